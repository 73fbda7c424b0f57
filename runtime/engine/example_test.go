// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"image"
	"image/png"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"

	"github.com/visionoperator/vision-operator/runtime/engine"
	"github.com/visionoperator/vision-operator/runtime/fault"
	"github.com/visionoperator/vision-operator/runtime/reference"
	"github.com/visionoperator/vision-operator/runtime/router"
	"github.com/visionoperator/vision-operator/runtime/workspace"
)

// A Go program looks at an image without Kubernetes: it writes the router
// document itself. The model here is a small local server.
func Example() {
	model := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		content, _ := json.Marshal(`{"type":"visual_observation","schema":"visual_observation.v1","summary":"An empty picture.","uncertainties":[]}`)
		_, _ = io.WriteString(w, `{"choices":[{"message":{"content":`+string(content)+`}}]}`)
	}))
	defer model.Close()

	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(dir) }()
	file, err := os.Create(filepath.Join(dir, "chart.png"))
	if err != nil {
		fmt.Println(err)
		return
	}
	_ = png.Encode(file, image.NewGray(image.Rect(0, 0, 320, 200)))
	_ = file.Close()

	space, err := workspace.Open([]string{dir})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer space.Close()
	eng := engine.New(engine.Options{Profile: "policy/mine", Workspaces: space, Version: "example"})
	defer eng.Close()
	err = eng.Use(&router.Document{
		Version: router.Version, Namespace: "local",
		Profiles: []router.Profile{{
			ID: "policy/mine", From: "local/mine", DefaultModel: router.Auto, PerCallModel: router.PerCallAllowed,
			Providers: []router.ProviderUse{{Alias: "local", Provider: "local/model"}},
			Limits: router.Limits{
				Image:   router.ImageLimits{MaxBytes: 20 << 20, MaxPixels: 50_000_000},
				Request: router.RequestLimits{MaxDistinctImages: 8, MaxTotalImageBytes: 20 << 20, MaxProbedPaths: 16, MaxBodyBytes: 64 << 20},
			},
			Cache: router.Cache{TTL: "24h", MaxEntries: 1000, MaxBytes: 16 << 20},
		}},
		Providers: []router.Provider{{
			Name: "local/model", Transport: router.TransportOpenAIChatCompletions,
			Endpoints: []router.Endpoint{{Name: "default", URL: model.URL + "/v1", Timeout: "1m"}},
			Models:    []router.Model{{Name: "any", ImageInput: true}},
		}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}

	result, err := eng.View(context.Background(), engine.Request{Path: "chart.png", Prompt: "What does the chart show?"})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(result.VisualReference.MIME, *result.VisualReference.Size)
	fmt.Println(result.VisionSelection.VisionModelRef)
	fmt.Println(result.Observation.Summary)

	_, err = eng.View(context.Background(), engine.Request{Path: "/etc/passwd", Prompt: "What does it say?"})
	fmt.Println(fault.As(err).Kind, fault.As(err).Reason)
	// Output:
	// image/png {320 200}
	// local@default/any
	// An empty picture.
	// policy_denied OutsideWorkspace
}

// The same document may come from a file, such as one that kubectl vision render
// printed; and an image need not lie in a workspace: it may be uploaded.
func Example_documentFromAFile() {
	model := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		content, _ := json.Marshal(`{"type":"visual_observation","schema":"visual_observation.v1","summary":"An empty picture.","uncertainties":[]}`)
		_, _ = io.WriteString(w, `{"choices":[{"message":{"content":`+string(content)+`}}]}`)
	}))
	defer model.Close()
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(dir) }()
	_ = os.WriteFile(filepath.Join(dir, "router.json"), []byte(strings.ReplaceAll(document, "MODEL", model.URL)), 0o600)

	data, err := os.ReadFile(filepath.Join(dir, "router.json"))
	if err != nil {
		fmt.Println(err)
		return
	}
	doc, err := router.Parse(data)
	if err != nil {
		fmt.Println(err)
		return
	}
	references, err := reference.Open(reference.Options{Dir: filepath.Join(dir, "cache")})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = references.Close() }()
	eng := engine.New(engine.Options{Profile: "policy/mine", References: references})
	defer eng.Close()
	if err := eng.Use(doc); err != nil {
		fmt.Println(err)
		return
	}

	var chart bytes.Buffer
	_ = png.Encode(&chart, image.NewGray(image.Rect(0, 0, 320, 200)))
	kept, err := eng.Upload(context.Background(), &chart, int64(chart.Len()))
	if err != nil {
		fmt.Println(err)
		return
	}
	for range 2 {
		result, err := eng.View(context.Background(), engine.Request{Path: kept.URI, Prompt: "What does the chart show?"})
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(result.VisualReference.Path == kept.URI, result.Observation.Summary, result.Cached)
	}
	// Output:
	// true An empty picture. false
	// true An empty picture. true
}

const document = `{
 "version": "router/v1", "namespace": "local",
 "profiles": [{
  "id": "policy/mine", "from": "local/mine", "defaultModel": "local@default/any", "perCallModel": "Denied",
  "providers": [{"alias": "local", "provider": "local/model"}],
  "limits": {
   "image": {"maxBytes": 20971520, "maxPixels": 50000000},
   "request": {"maxDistinctImages": 8, "maxTotalImageBytes": 20971520, "maxProbedPaths": 16, "maxBodyBytes": 67108864}
  },
  "cache": {"ttl": "24h", "maxEntries": 1000, "maxBytes": 16777216},
  "runtime": {"mcp": true}
 }],
 "providers": [{
  "name": "local/model", "transport": "OpenAIChatCompletions",
  "endpoints": [{"name": "default", "url": "MODEL/v1", "timeout": "1m"}],
  "models": [{"name": "any", "imageInput": true}]
 }]
}`
