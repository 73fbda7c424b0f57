// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package dependencies

import (
	"strings"
	"testing"
)

// graph makes a graph from lines such as "runtime/engine: runtime/router os", where a name
// with a dot before its first slash, or one that is not a folder of ours, is not the module's.
func graph(t *testing.T, lines ...string) Graph {
	t.Helper()
	ours := []string{"api", "cmd", "controllers", "hack", "runtime", "test", "webhook"}
	full := func(name string) string {
		for _, folder := range ours {
			if matches(folder+"/...", name) {
				return Module + "/" + name
			}
		}
		return name
	}
	g := Graph{}
	add := func(path string) {
		if _, ok := g[path]; !ok {
			first, _, _ := strings.Cut(path, "/")
			g[path] = Package{ImportPath: path, Standard: !strings.Contains(first, ".")}
		}
	}
	for _, line := range lines {
		name, imports, ok := strings.Cut(line, ":")
		if !ok {
			t.Fatalf("line %q has no colon", line)
		}
		path := full(name)
		add(path)
		p := g[path]
		for imported := range strings.FieldsSeq(imports) {
			add(full(imported))
			p.Imports = append(p.Imports, full(imported))
		}
		g[path] = p
	}
	return g
}

func TestCheckImports(t *testing.T) {
	cases := []struct {
		name  string
		graph []string
		want  string // the way to the forbidden package; empty = all is allowed
		words string // of the reason
	}{
		{
			name:  "the runtime must not import Kubernetes",
			graph: []string{"runtime/engine: k8s.io/api/core/v1"},
			want:  "runtime/engine -> k8s.io/api/core/v1", words: "light library",
		},
		{
			name:  "the runtime must not get Kubernetes through another module either",
			graph: []string{"runtime/engine: example.com/x", "example.com/x: k8s.io/klog/v2"},
			want:  "runtime/engine -> example.com/x -> k8s.io/klog/v2", words: "light library",
		},
		{
			name:  "the runtime must not import the API types",
			graph: []string{"runtime/selection: api/v1alpha1"},
			want:  "runtime/selection -> api/v1alpha1", words: "light library",
		},
		{
			name:  "the runtime must not import controller-runtime",
			graph: []string{"runtime: sigs.k8s.io/controller-runtime/pkg/log"},
			want:  "runtime -> sigs.k8s.io/controller-runtime/pkg/log", words: "light library",
		},
		{
			name:  "the runtime may import a module whose path only looks alike",
			graph: []string{"runtime/engine: sigs.k8s.io/yaml example.com/k8s.io"},
		},
		{
			name:  "compile must not take a context",
			graph: []string{"controllers/compile: context"},
			want:  "controllers/compile -> context", words: "pure function",
		},
		{
			name:  "compile must not read the clock",
			graph: []string{"controllers/compile: time"},
			want:  "controllers/compile -> time", words: "pure function",
		},
		{
			name:  "compile must not log",
			graph: []string{"controllers/compile: log/slog"},
			want:  "controllers/compile -> log/slog", words: "pure function",
		},
		{
			name:  "compile must not throw dice",
			graph: []string{"controllers/compile: math/rand/v2"},
			want:  "controllers/compile -> math/rand/v2", words: "pure function",
		},
		{
			name:  "inject must not read a file",
			graph: []string{"webhook/inject: os"},
			want:  "webhook/inject -> os", words: "pure function",
		},
		{
			name:  "inject must not reach the API server",
			graph: []string{"webhook/inject: sigs.k8s.io/controller-runtime/pkg/client"},
			want:  "webhook/inject -> sigs.k8s.io/controller-runtime/pkg/client", words: "pure function",
		},
		{
			name:  "what compile imports may take a context, and net/url is no network",
			graph: []string{"controllers/compile: api/v1alpha1 net/url runtime/router", "api/v1alpha1: context time"},
		},
		{
			name:  "the rims may do all that their cores may not",
			graph: []string{"controllers: controllers/compile context time os sigs.k8s.io/controller-runtime/pkg/client", "webhook: net/http"},
		},
		{
			name:  "the contract must not link another module",
			graph: []string{"runtime/router: runtime/router/glob", "runtime/router/glob: example.com/glob"},
			want:  "runtime/router -> runtime/router/glob -> example.com/glob", words: "standard library alone",
		},
		{
			name:  "the contract must not link the rest of the runtime",
			graph: []string{"runtime/router: runtime/fault"},
			want:  "runtime/router -> runtime/fault", words: "standard library alone",
		},
		{
			name:  "a controller must not call the runtime",
			graph: []string{"controllers: runtime/engine"},
			want:  "controllers -> runtime/engine", words: "two planes meet at runtime/router",
		},
		{
			name:  "the webhook must not call the runtime",
			graph: []string{"webhook/certs: runtime/provider/transport"},
			want:  "webhook/certs -> runtime/provider/transport", words: "two planes meet at runtime/router",
		},
		{
			name:  "a compiler must not call admission",
			graph: []string{"controllers/compile: webhook/inject"},
			want:  "controllers/compile -> webhook/inject", words: "never the other way round",
		},
		{
			name:  "admission must not call a reconciler",
			graph: []string{"webhook: controllers"},
			want:  "webhook -> controllers", words: "only what reads, judges and compiles",
		},
		{
			name:  "admission may call the compiler",
			graph: []string{"webhook: controllers/compile webhook/inject"},
		},
		{
			name:  "a probe must not open files",
			graph: []string{"runtime/probe: os"},
			want:  "runtime/probe -> os", words: "touches no file",
		},
		{
			name:  "an observation must not call the network",
			graph: []string{"runtime/observation: net/http"},
			want:  "runtime/observation -> net/http", words: "touches no file",
		},
		{
			name:  "a message must not resolve names",
			graph: []string{"runtime/message: net"},
			want:  "runtime/message -> net", words: "touches no file",
		},
		{
			name:  "a preflight must not open the images that it judges",
			graph: []string{"runtime/preflight: os"},
			want:  "runtime/preflight -> os", words: "touches no file",
		},
		{
			name:  "token rules must not fetch their catalog",
			graph: []string{"runtime/tokens: net/http"},
			want:  "runtime/tokens -> net/http", words: "no network",
		},
		{
			name:  "limits of vendors must not be read from files",
			graph: []string{"runtime/vendors: os"},
			want:  "runtime/vendors -> os", words: "touches no file",
		},
		{
			name:  "a review must not log what it reads",
			graph: []string{"runtime/review: log/slog"},
			want:  "runtime/review -> log/slog", words: "the caller reads, sends and logs",
		},
		{
			name:  "a smaller copy must not depend on chance",
			graph: []string{"runtime/downscale: math/rand/v2"},
			want:  "runtime/downscale -> math/rand/v2", words: "the same for the same input",
		},
		{
			name:  "a review may take a context and read addresses",
			graph: []string{"runtime/review: context net/url"},
		},
		{
			name:  "a product must not link test support",
			graph: []string{"cmd/vision-operator: test/envtest"},
			want:  "cmd/vision-operator -> test/envtest", words: "no product links them",
		},
		{
			name:  "a transport must not use a vendor's SDK",
			graph: []string{"runtime/provider/anthropic: github.com/anthropics/anthropic-sdk-go/v2/option"},
			want:  "runtime/provider/anthropic -> github.com/anthropics/anthropic-sdk-go/v2/option", words: "test/vendors",
		},
		{
			name:  "nor may it come in by another module",
			graph: []string{"cmd/vision-runtime: example.com/ai", "example.com/ai: google.golang.org/genai"},
			want:  "cmd/vision-runtime -> example.com/ai -> google.golang.org/genai", words: "test/vendors",
		},
		{
			name:  "a protocol must not link what its tests are made of",
			graph: []string{"runtime/provider/gemini: runtime/provider/exchange runtime/provider/exchange/exchangetest"},
			want:  "runtime/provider/gemini -> runtime/provider/exchange/exchangetest", words: "only files of tests",
		},
		{
			name:  "what tests are made of may import what it tests",
			graph: []string{"runtime/provider/exchange/exchangetest: runtime/provider/exchange testing"},
		},
		{
			name:  "a command may link both planes",
			graph: []string{"cmd/kubectl-vision: controllers/compile runtime/router runtime/engine k8s.io/api/core/v1"},
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			violations := CheckImports(graph(t, c.graph...), Rules())
			if c.want == "" {
				if len(violations) > 0 {
					t.Fatalf("got %v, want no violation", violations)
				}
				return
			}
			for _, v := range violations {
				if strings.Contains(v.String(), "forbidden import: "+c.want+": ") && strings.Contains(v.String(), c.words) {
					return
				}
			}
			t.Fatalf("got %v, want %q for a reason with %q", violations, c.want, c.words)
		})
	}
}
