// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
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

	"github.com/visionoperator/vision-operator/runtime/engine"
	"github.com/visionoperator/vision-operator/runtime/fault"
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
		fmt.Println(fault.As(err).Kind, err)
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
