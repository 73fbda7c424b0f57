// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/visionoperator/vision-operator/controllers/compile"
)

// agentEnv is what tells an agent where its runtime is, in a fixed order.
func agentEnv(mcp bool) []corev1.EnvVar {
	env := []corev1.EnvVar{{Name: compile.EnvRuntimeURL, Value: compile.RuntimeURL}}
	if mcp {
		env = append(env, corev1.EnvVar{Name: compile.EnvMCPURL, Value: compile.MCPURL})
	}
	return env
}

// withAgentEnv adds env to a container without overwriting what its author set.
//
// A container without envFrom gets the variables that it lacks written out,
// first, so that its own may refer to them. In a container with envFrom a
// written-out variable would beat the author's sources, whose contents cannot be
// seen here; it gets the ConfigMap of the same variables as the first source
// instead, which every other source and every written-out variable beats.
func withAgentEnv(c *corev1.Container, env []corev1.EnvVar) {
	if len(c.EnvFrom) > 0 {
		if !slices.ContainsFunc(c.EnvFrom, isAgentEnvSource) {
			source := corev1.EnvFromSource{ConfigMapRef: &corev1.ConfigMapEnvSource{
				LocalObjectReference: corev1.LocalObjectReference{Name: compile.EnvConfigMapName},
			}}
			c.EnvFrom = slices.Insert(c.EnvFrom, 0, source)
		}
		return
	}
	var missing []corev1.EnvVar
	for _, v := range env {
		if !hasEnv(c.Env, v.Name) {
			missing = append(missing, v)
		}
	}
	c.Env = slices.Insert(c.Env, 0, missing...)
}

func isAgentEnvSource(s corev1.EnvFromSource) bool {
	return s.ConfigMapRef != nil && s.ConfigMapRef.Name == compile.EnvConfigMapName && s.Prefix == ""
}

func hasEnv(env []corev1.EnvVar, name string) bool {
	return slices.ContainsFunc(env, func(v corev1.EnvVar) bool { return v.Name == name })
}

// listsAll reports whether a container's env has every name. What injection
// itself adds to env does not count, so that the answer is the same before and after.
func listsAll(env []corev1.EnvVar, names []string) bool {
	ours := compile.Env()
	for _, name := range names {
		if _, added := ours[name]; added || !hasEnv(env, name) {
			return false
		}
	}
	return true
}

// envNamed are the variables of a container's env that are needed, directly or
// through other variables, in the container's order and as often as it has them:
// Kubernetes lets the last of a name count. What injection itself adds is left out.
func envNamed(env []corev1.EnvVar, needed map[string]bool) []corev1.EnvVar {
	if len(needed) == 0 {
		return nil
	}
	refers, ours := map[string][]string{}, compile.Env()
	for i := range env {
		refers[env[i].Name] = append(refers[env[i].Name], references(env[i].Value)...)
	}
	queue := slices.Collect(maps.Keys(needed))
	for len(queue) > 0 {
		last := len(queue) - 1
		more := refers[queue[last]]
		queue = queue[:last]
		for _, name := range more {
			if _, added := ours[name]; !added && !needed[name] {
				needed[name] = true
				queue = append(queue, name)
			}
		}
	}
	var out []corev1.EnvVar
	for i := range env {
		if needed[env[i].Name] {
			out = append(out, *env[i].DeepCopy())
		}
	}
	return out
}

// references are the NAMEs of the $(NAME) in an expression by Kubernetes' rules:
// $$ stands for a dollar, and a $ before anything else for itself.
func references(expr string) []string {
	var names []string
	for i := 0; i+1 < len(expr); i++ {
		if expr[i] != '$' {
			continue
		}
		i++
		if expr[i] != '(' {
			continue
		}
		end := strings.IndexByte(expr[i:], ')')
		if end < 0 {
			break
		}
		names = append(names, expr[i+1:i+end])
		i += end
	}
	return names
}

// literal escapes text for a container's command line, where Kubernetes would
// otherwise replace $(NAME).
func literal(s string) string { return strings.ReplaceAll(s, "$", "$$") }
