// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package gemini_test

import (
	"strings"
	"testing"

	"github.com/visionoperator/vision-operator/runtime/provider/gemini"
	"github.com/visionoperator/vision-operator/runtime/provider/lower"
)

func TestWhatAModelsNameSays(t *testing.T) {
	type said struct {
		major, minor int
		dialect      lower.Dialect
	}
	for model, want := range map[string]said{
		"gemini-1.5-pro-002":              {1, 5, lower.GeminiSchema},
		"gemini-2.0-flash-001":            {2, 0, lower.GeminiSchema},
		"gemini-2-flash":                  {2, 0, lower.GeminiSchema},
		"gemini-2.5-flash":                {2, 5, lower.GeminiJSONSchema},
		"models/gemini-2.5-pro":           {2, 5, lower.GeminiJSONSchema},
		"gemini-2.5":                      {2, 5, lower.GeminiJSONSchema},
		"google/gemini-2.5-flash:free":    {2, 5, lower.GeminiJSONSchema},
		"Gemini-2.5-Flash-Lite":           {2, 5, lower.GeminiJSONSchema},
		"gemini-2.10-flash":               {2, 10, lower.GeminiJSONSchema},
		"gemini-3-pro-preview":            {3, 0, lower.GeminiJSONSchema},
		"gemini-3.1-flash@001":            {3, 1, lower.GeminiJSONSchema},
		"gemini-10":                       {10, 0, lower.GeminiJSONSchema},
		"gemini-exp-1206":                 {0, 0, lower.GeminiSchema},
		"gemini-1206":                     {0, 0, lower.GeminiSchema},
		"gemini-flash-latest":             {0, 0, lower.GeminiSchema},
		"gemini-robotics-er-1.5-preview":  {0, 0, lower.GeminiSchema},
		"tunedModels/mine-gemini-2.5-abc": {2, 5, lower.GeminiJSONSchema},
		"gemma-3-27b-it":                  {0, 0, lower.GeminiSchema},
		"gemini-":                         {0, 0, lower.GeminiSchema},
		"gemini":                          {0, 0, lower.GeminiSchema},
		"":                                {0, 0, lower.GeminiSchema},
	} {
		var got said
		got.major, got.minor, got.dialect = gemini.Version(model)
		if got != want {
			t.Errorf("%s says %+v, want %+v", model, got, want)
		}
	}
}

func FuzzModelName(f *testing.F) {
	for _, seed := range []string{newModel, oldModel, "gemini-", "gemini-2.", "gemini-.5", "gemini-99.99", "tunedModels/a/b", "models/..", "\xffgemini-\x003"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, name string) {
		major, minor, dialect := gemini.Version(name)
		if major < 0 || major > 99 || minor < 0 || minor > 99 {
			t.Errorf("%q is version %d.%d", name, major, minor)
		}
		if json := dialect == lower.GeminiJSONSchema; json != (major*100+minor >= 205) {
			t.Errorf("%q of version %d.%d takes %v", name, major, minor, dialect)
		}
		path := gemini.Resource(name)
		if strings.Count(path, "/") != 2 || strings.ContainsAny(path, ":?#") {
			t.Errorf("%q is at %s", name, path)
		}
	})
}
