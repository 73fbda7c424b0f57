// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"

	"github.com/visionoperator/vision-operator/runtime/serve/reply"
	"github.com/visionoperator/vision-operator/runtime/serve/tool"
)

// openAPIBase is the document without what other packages define.
//
//go:embed openapi.json
var openAPIBase []byte

// openAPI serves the document; it is built when it is first asked for, since
// most runtimes never are.
func openAPI(version string) http.HandlerFunc {
	document := sync.OnceValues(func() ([]byte, error) { return Document(version) })
	return func(w http.ResponseWriter, _ *http.Request) {
		body, err := document()
		if err != nil {
			reply.JSON(w, http.StatusInternalServerError, reply.NewFailure(err, nil))
			return
		}
		reply.Raw(w, http.StatusOK, body)
	}
}

// Document returns the API as OpenAPI 3.1. Its schemas of the tool's arguments,
// results and failures are the very ones that MCP publishes.
func Document(version string) ([]byte, error) {
	var doc map[string]any
	if err := json.Unmarshal(openAPIBase, &doc); err != nil {
		return nil, fmt.Errorf("building OpenAPI document: %w", err)
	}
	doc["info"].(map[string]any)["version"] = version
	schemas := doc["components"].(map[string]any)["schemas"].(map[string]any)
	schemas["ViewImageRequest"] = tool.InputSchema()
	schemas["ViewImageResult"] = tool.ResultSchema()
	schemas["Failure"] = tool.FailureSchema()
	kept := schemas["KeptReference"].(map[string]any)["properties"].(map[string]any)
	kept["visual_reference"] = tool.ReferenceSchema()
	body, err := json.Marshal(doc)
	if err != nil {
		return nil, fmt.Errorf("building OpenAPI document: %w", err)
	}
	return body, nil
}
