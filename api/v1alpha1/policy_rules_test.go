// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/visionoperator/vision-operator/runtime/router"
)

func TestAPolicyMayBeEmptyAndMaySetEverything(t *testing.T) {
	rule{edit: `
metadata: {name: team.example.com}
spec:
  podSelector: {matchLabels: {app: agent}}
  providers: [{name: ocr}, {name: ocr, namespace: models, alias: shared_ocr}]
  defaultModel: shared_ocr@local/tesseract
  fallbackModels: [ocr/tesseract]
  allowedModels: ["*@local/*"]
  perCallModel: Denied
  limits:
    image: {maxBytes: 1, maxPixels: 1, mediaTypes: [image/png], onOversize: Downscale}
    request: {maxDistinctImages: 1, maxTotalImageBytes: 1, maxProbedPaths: 1, maxImageTokens: 1, maxBodyBytes: 1}
  quotas: [{scope: Namespace, window: 744h, observations: 1, imageTokens: 1, cost: "0.000000001", mode: Shadow, onStoreFailure: Deny}]
  injection:
    mode: Observation
    tools: ["mcp_*_view_image"]
    excludeTools: [screenshot]
    pathArguments: [path]
    waitFor: VisionToolCalls
    keep: CurrentTurn
    markdownImages: Attach
    template: {heading: Images, item: "{path}", unavailable: gone}
    observationPrompt: Describe the image.
  cache: {ttl: 720h, maxEntries: 1, maxBytes: 1, persist: true}
  runtime:
    workspaces: [/workspace, /var/lib/agent, /home/me/.cache]
    proxy: {enabled: true, setBaseURLs: true, passthrough: [{method: GET, path: "/openai/v1/files/*"}]}
    mcp: false
    resources: {requests: {memory: 32Mi}, limits: {memory: 64Mi}}
    runAsUser: 0
    logLevel: debug
  admission: {mode: "Off"}
`}.check(t, basePolicy)
}

func TestProvidersOfAPolicy(t *testing.T) {
	for _, r := range []rule{
		{name: "an empty list is refused", edit: "spec: {providers: []}", field: "spec.providers", words: "at least 1 items"},
		{name: "one provider twice is refused", edit: "spec: {providers: [{name: a}, {name: a}]}", field: "spec.providers", words: "must be unique: routes begin with it"},
		{name: "an alias that is another's name is refused", edit: "spec: {providers: [{name: a}, {name: b, alias: a}]}", field: "spec.providers", words: "must be unique: routes begin with it"},
		{name: "one provider under two aliases is accepted", edit: "spec: {providers: [{name: a, alias: left}, {name: a, alias: right}]}"},
		{name: "a name with a dot is refused", edit: "spec: {providers: [{name: a.b}]}", field: "spec.providers[0].name", words: "the name of a VisionProvider is made of"},
		{name: "an alias with an @ is refused", edit: "spec: {providers: [{name: a, alias: a@b}]}", field: "spec.providers[0].alias", words: "an alias is part of a route"},
		{name: "a namespace with a slash is refused", edit: "spec: {providers: [{name: a, namespace: b/c}]}", field: "spec.providers[0].namespace", words: "a namespace is made of"},
	} {
		t.Run(r.name, func(t *testing.T) { r.check(t, basePolicy) })
	}
}

// routes are texts on which the CRD and the runtime's own parser must agree.
var routes = []string{
	"ocr@local/tesseract", "ocr/tesseract", "a/b", "0/b", "a_b@c_d/e", "a-b@c-d/e", "p/Qwen/Qwen3-VL-8B@2/x", "p/m@e", "p@e/m@x/y", "p/é世界",
	"p/" + strings.Repeat("m", 253), "p/" + strings.Repeat("é", 126), strings.Repeat("p", 63) + "@" + strings.Repeat("e", 63) + "/m", "p/\u00a0", "p//", "p/~!$%^&*()",
	"tesseract", "auto@x", "/m", "p/", "p@/m", "@e/m", "p@e", "p@e@f/m", "P/m", "-p/m", "p-/m", "_p/m", "p_/m", "p.q/m", "p@E/m", "p@-e/m", "p@e-/m", "p /m", " p/m", "p/m ", "p/a b", "p/a\tb", "p/a\nb", "p/m\n", "\np/m",
	"p/\x7f", "p/\x01", "p@e.f/m", "ns/p@e", "é/m", strings.Repeat("p", 64) + "/m", "p@" + strings.Repeat("e", 64) + "/m", "p/" + strings.Repeat("m", 254), "p/" + strings.Repeat("é", 127), "https://x/y",
}

func TestRoutesAreReadAlikeByTheAPIAndTheRuntime(t *testing.T) {
	accepted := 0
	for _, route := range routes {
		t.Run(route, func(t *testing.T) {
			_, err := router.ParseRoute(route)
			main := rule{edit: fmt.Sprintf("spec: {defaultModel: %q}", route)}
			fallback := rule{edit: fmt.Sprintf("spec: {fallbackModels: [%q]}", route)}
			if err != nil {
				main.field, main.words = "spec.defaultModel", "must be a route, provider@endpoint/model or provider/model"
				fallback.field, fallback.words = "spec.fallbackModels[0]", main.words
			} else {
				accepted++
			}
			main.check(t, basePolicy)
			fallback.check(t, basePolicy)
		})
	}
	if accepted < 10 || accepted > len(routes)-10 {
		t.Errorf("%d of %d routes are routes: the table must hold both kinds", accepted, len(routes))
	}
}

func TestModelsOfAPolicy(t *testing.T) {
	for _, r := range []rule{
		{name: "auto is a default", edit: "spec: {defaultModel: auto}"},
		{name: "Auto is not", edit: "spec: {defaultModel: Auto}", field: "spec.defaultModel", words: "or auto"},
		{name: "auto is no fallback", edit: "spec: {fallbackModels: [auto]}", field: "spec.fallbackModels[0]", words: "must be a route"},
		{name: "a fallback named twice is refused", edit: "spec: {fallbackModels: [a/b, a/b]}", field: "spec.fallbackModels", words: "must not be named twice"},
		{name: "an empty allow-list is refused", edit: "spec: {allowedModels: []}", field: "spec.allowedModels", words: "an empty allow-list would allow no model at all"},
		{name: "an empty glob is refused", edit: "spec: {allowedModels: ['']}", field: "spec.allowedModels[0]", words: "at least 1 chars"},
		{name: "a glob with white space is refused", edit: "spec: {allowedModels: ['ocr@* /x']}", field: "spec.allowedModels[0]", words: "must not hold white space"},
		{name: "a glob named twice is refused", edit: "spec: {allowedModels: ['*', '*']}", field: "spec.allowedModels[1]", words: "Duplicate value"},
		{name: "an unknown perCallModel is refused", edit: "spec: {perCallModel: Maybe}", field: "spec.perCallModel", words: "supported values", schemaOnly: true},
	} {
		t.Run(r.name, func(t *testing.T) { r.check(t, basePolicy) })
	}
}

func TestQuotasAndInjection(t *testing.T) {
	for _, r := range []rule{
		{name: "a quota of nothing is refused", edit: "spec: {quotas: [{scope: Pod, window: 1h}]}", field: "spec.quotas[0]", words: "at least one of observations, imageTokens and cost"},
		{name: "a quota without a window is refused", edit: "spec: {quotas: [{scope: Pod, observations: 1}]}", field: "spec.quotas[0].window", words: "Required"},
		{name: "a window of zero is refused", edit: "spec: {quotas: [{scope: Pod, window: 0s, observations: 1}]}", field: "spec.quotas[0].window", words: "must be between 1s and 744h"},
		{name: "a cost of zero is refused", edit: "spec: {quotas: [{scope: Pod, window: 1h, cost: '0.00'}]}", field: "spec.quotas[0].cost", words: "must be a plain decimal above 0"},
		{name: "a cost with a currency is refused", edit: "spec: {quotas: [{scope: Pod, window: 1h, cost: '$5'}]}", field: "spec.quotas[0].cost", words: "must be a plain decimal above 0"},
		{name: "an unknown scope is refused", edit: "spec: {quotas: [{scope: Planet, window: 1h, observations: 1}]}", field: "spec.quotas[0].scope", words: "supported values", schemaOnly: true},
		{name: "an unknown injection mode is refused", edit: "spec: {injection: {mode: Sometimes}}", field: "spec.injection.mode", words: "supported values", schemaOnly: true},
		{name: "an empty list of tools is refused", edit: "spec: {injection: {tools: []}}", field: "spec.injection.tools", words: "at least 1 items"},
		{name: "an empty list of path arguments is refused", edit: "spec: {injection: {pathArguments: []}}", field: "spec.injection.pathArguments", words: "at least 1 items"},
		{name: "a tool with white space is refused", edit: "spec: {injection: {tools: ['view image']}}", field: "spec.injection.tools[0]", words: "a tool glob is", schemaOnly: true},
	} {
		t.Run(r.name, func(t *testing.T) { r.check(t, basePolicy) })
	}
}

func TestTheRuntimeOfAPolicy(t *testing.T) {
	rules := []rule{
		{name: "an empty list of workspaces is refused", edit: "spec: {runtime: {workspaces: []}}", field: "spec.runtime.workspaces", words: "at least 1 items"},
		{name: "a TTL of zero is refused", edit: "spec: {cache: {ttl: 0h}}", field: "spec.cache.ttl", words: "must be above 0 and at most 720h"},
		{name: "a negative user is refused", edit: "spec: {runtime: {runAsUser: -1}}", field: "spec.runtime.runAsUser", words: "greater than or equal to 0"},
		{name: "resource claims are refused", edit: "spec: {runtime: {resources: {claims: [{name: gpu}]}}}", field: "spec.runtime.resources", words: "takes no resource claims"},
		{name: "all resources of a container are accepted, in every way to write them", edit: "spec: {runtime: {resources: {requests: {cpu: 1, memory: 1e6, ephemeral-storage: 1Gi}, limits: {cpu: '1.5', memory: 64Mi}}}}"},
		{name: "a device among the limits is refused", edit: "spec: {runtime: {resources: {limits: {example.com/gpu: 1}}}}", field: "spec.runtime.resources.limits", words: "cpu, memory and ephemeral-storage, nothing else"},
		{name: "a request of something unknown is refused", edit: "spec: {runtime: {resources: {requests: {mem: 1Gi}}}}", field: "spec.runtime.resources.requests", words: "cpu, memory and ephemeral-storage, nothing else"},
		{name: "a limit that only looks like a quantity is refused", edit: "spec: {runtime: {resources: {limits: {cpu: '1e1.5'}}}}", field: "spec.runtime.resources.limits", words: "must be quantities", schemaOnly: true},
		{name: "a request that only looks like a quantity is refused", edit: "spec: {runtime: {resources: {requests: {memory: '1e.5'}}}}", field: "spec.runtime.resources.requests", words: "must be quantities", schemaOnly: true},
		{name: "an unknown log level is refused", edit: "spec: {runtime: {logLevel: trace}}", field: "spec.runtime.logLevel", words: "supported values", schemaOnly: true},
		{name: "an unknown admission mode is refused", edit: "spec: {admission: {mode: Perhaps}}", field: "spec.admission.mode", words: "supported values", schemaOnly: true},
		{name: "a passthrough of any method is refused", edit: "spec: {runtime: {proxy: {passthrough: [{method: CONNECT, path: /x}]}}}", field: "spec.runtime.proxy.passthrough[0].method", words: "supported values", schemaOnly: true},
		{name: "a passthrough path without a slash is refused", edit: "spec: {runtime: {proxy: {passthrough: [{method: GET, path: x}]}}}", field: "spec.runtime.proxy.passthrough[0].path", words: "begins with a slash", schemaOnly: true},
		{name: "a passthrough path that climbs is refused", edit: "spec: {runtime: {proxy: {passthrough: [{method: GET, path: /a/../b}]}}}", field: "spec.runtime.proxy.passthrough[0].path", words: "without . and .. segments", schemaOnly: true},
	}
	for _, w := range []string{"workspace", "./workspace", "/workspace/", "/a//b", "/a/./b", "/a/../b", "/..", "/a,b", "/a:b", "/a\nb", "//"} {
		rules = append(rules, rule{name: fmt.Sprintf("the workspace %q is refused", w), edit: fmt.Sprintf("spec: {runtime: {workspaces: [%q]}}", w),
			field: "spec.runtime.workspaces[0]", words: "an absolute path in its shortest form"})
	}
	for _, w := range []string{"/", "/proc", "/proc/1/root", "/sys", "/dev/shm", "/var", "/var/run", "/var/run/secrets/kubernetes.io", "/run/secrets"} {
		rules = append(rules, rule{name: "the workspace " + w + " is refused", edit: "spec: {runtime: {workspaces: [" + w + "]}}",
			field: "spec.runtime.workspaces[0]", words: "must not be /, nor be, hold or lie in /proc"})
	}
	for _, w := range []string{"/process", "/system", "/developers", "/runner", "/var/runner", "/data/proc", "/a..b", "/...", "/with space"} {
		rules = append(rules, rule{name: "the workspace " + w + " is accepted", edit: fmt.Sprintf("spec: {runtime: {workspaces: [%q]}}", w)})
	}
	for _, r := range rules {
		t.Run(r.name, func(t *testing.T) { r.check(t, basePolicy) })
	}
}
