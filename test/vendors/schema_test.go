// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package vendors

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	sdk "github.com/anthropics/anthropic-sdk-go/v2"
	"google.golang.org/genai"

	"github.com/visionoperator/vision-operator/runtime/provider/lower"
)

// loweredSchemas are the golden schemas of a dialect.
func loweredSchemas(t *testing.T, to lower.Dialect, check func(t *testing.T, schema []byte)) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("../../runtime/provider/lower/testdata/*", to.String()+".json"))
	if err != nil || len(files) < 10 {
		t.Fatalf("%d lowered schemas: %v", len(files), err)
	}
	for _, file := range files {
		t.Run(filepath.Base(filepath.Dir(file)), func(t *testing.T) {
			schema, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			check(t, schema)
		})
	}
}

func TestGeminiSchemasFitTheirType(t *testing.T) {
	loweredSchemas(t, lower.GeminiSchema, func(t *testing.T, schema []byte) {
		_ = strictly[genai.Schema](t, schema)
	})
}

// TestAnthropicFindsNothingToLower gives our lowered schemas to the SDK's own
// lowering, which must leave them as they are.
func TestAnthropicFindsNothingToLower(t *testing.T) {
	given := 0
	loweredSchemas(t, lower.Anthropic, func(t *testing.T, schema []byte) {
		if bytes.Contains(schema, []byte(`"type": [`)) {
			return // the API takes lists of types; the SDK's helper cannot read them
		}
		given++
		var source map[string]any
		if err := json.Unmarshal(schema, &source); err != nil {
			t.Fatal(err)
		}
		sameJSON(t, encoded(t, sdk.BetaJSONSchemaOutputFormat(source).Schema), encoded(t, source))
	})
	if given < 4 {
		t.Errorf("only %d schemas were given", given)
	}
}
