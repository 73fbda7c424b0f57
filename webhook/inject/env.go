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

// withAgentEnv adds the plan's variables to a container without overwriting what
// its author set.
//
// A container without envFrom gets the variables that it lacks written out,
// first, so that its own may refer to them. In a container with envFrom a
// written-out variable would beat the author's sources, whose contents cannot be
// seen here; it gets the ConfigMap of the same variables as the first source
// instead, which every other source and every written-out variable beats.
func withAgentEnv(c *corev1.Container, plan *Plan) {
	if len(c.EnvFrom) > 0 {
		if plan.SetBaseURLs {
			addSource(c, compile.BaseURLsConfigMapName)
		}
		addSource(c, compile.EnvConfigMapName)
		return
	}
	var missing []corev1.EnvVar
	for _, v := range plan.Env {
		if !hasEnv(c.Env, v.Name) {
			missing = append(missing, v)
		}
	}
	if plan.SetBaseURLs {
		missing = append(missing, missingBaseURLs(c.Env)...)
	}
	c.Env = slices.Insert(c.Env, 0, missing...)
}

// missingBaseURLs are the base URLs that a container's author leaves to us, each with
// a key to go with it where the author sets none.
func missingBaseURLs(env []corev1.EnvVar) []corev1.EnvVar {
	var missing []corev1.EnvVar
	for _, sdk := range compile.SDKs() {
		if hasEnv(env, sdk.URLName) {
			continue
		}
		missing = append(missing, corev1.EnvVar{Name: sdk.URLName, Value: sdk.URL})
		if !hasEnv(env, sdk.KeyName) {
			missing = append(missing, corev1.EnvVar{Name: sdk.KeyName, Value: compile.PlaceholderKey})
		}
	}
	return missing
}

// addSource puts a ConfigMap of ours before all other sources.
func addSource(c *corev1.Container, name string) {
	if slices.ContainsFunc(c.EnvFrom, func(s corev1.EnvFromSource) bool { return isSource(s, name) }) {
		return
	}
	source := corev1.EnvFromSource{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: name}}}
	c.EnvFrom = slices.Insert(c.EnvFrom, 0, source)
}

func isSource(s corev1.EnvFromSource, name string) bool {
	return s.ConfigMapRef != nil && s.ConfigMapRef.Name == name && s.Prefix == ""
}

// addedNames are the variables that injection itself may add.
func addedNames() map[string]bool {
	names := map[string]bool{}
	for _, set := range compile.VariableSets() {
		for name := range set.Data {
			names[name] = true
		}
	}
	return names
}

func hasEnv(env []corev1.EnvVar, name string) bool {
	return slices.ContainsFunc(env, func(v corev1.EnvVar) bool { return v.Name == name })
}

// listsAll reports whether a container's env has every name. What injection
// itself adds to env does not count, so that the answer is the same before and after.
func listsAll(env []corev1.EnvVar, names []string) bool {
	ours := addedNames()
	for _, name := range names {
		if ours[name] || !hasEnv(env, name) {
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
	refers, ours := map[string][]string{}, addedNames()
	for i := range env {
		refers[env[i].Name] = append(refers[env[i].Name], references(env[i].Value)...)
	}
	queue := slices.Collect(maps.Keys(needed))
	for len(queue) > 0 {
		last := len(queue) - 1
		more := refers[queue[last]]
		queue = queue[:last]
		for _, name := range more {
			if !ours[name] && !needed[name] {
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

// ofContainer makes variables mean in another container what they mean in theirs:
// one that is a resource of "the" container names it. The variables are changed.
func ofContainer(name string, env []corev1.EnvVar) []corev1.EnvVar {
	for i := range env {
		if from := env[i].ValueFrom; from != nil && from.ResourceFieldRef != nil && from.ResourceFieldRef.ContainerName == "" {
			from.ResourceFieldRef.ContainerName = name
		}
	}
	return env
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
