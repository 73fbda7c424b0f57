// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package inject

import (
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

// envFor are the variables of a container that an expression with $(NAME)
// references needs, directly or through other variables, in the container's
// order. It is false when one of the expression's own is not in the container's
// env. What injection itself adds to env does not count, so that the answer is
// the same before and after.
func envFor(c *corev1.Container, expr string) ([]corev1.EnvVar, bool) {
	needed, ours := map[string]bool{}, compile.Env()
	queue := references(expr)
	for _, name := range queue {
		if _, added := ours[name]; added || !hasEnv(c.Env, name) {
			return nil, false
		}
	}
	for len(queue) > 0 {
		name := queue[0]
		queue = queue[1:]
		if _, added := ours[name]; added || needed[name] {
			continue
		}
		needed[name] = true
		for i := range c.Env {
			if c.Env[i].Name == name {
				queue = append(queue, references(c.Env[i].Value)...)
			}
		}
	}
	var out []corev1.EnvVar
	for i := range c.Env {
		if needed[c.Env[i].Name] {
			out = append(out, *c.Env[i].DeepCopy())
		}
	}
	return out, true
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

// mergeEnv appends those of more that env does not have.
func mergeEnv(env, more []corev1.EnvVar) []corev1.EnvVar {
	for _, v := range more {
		if !slices.ContainsFunc(env, func(o corev1.EnvVar) bool { return o.Name == v.Name && o.Value == v.Value }) {
			env = append(env, v)
		}
	}
	return env
}
