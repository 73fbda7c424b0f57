// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"testing"
)

// onePixel is a PNG of one white pixel.
const onePixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGP4DwABAQEAsTj2FAAAAABJRU5ErkJggg=="

func imagePart(url string) string {
	return fmt.Sprintf(`{"type":"image_url","image_url":{"url":%q}}`, url)
}

func body(rest string, parts ...string) string {
	return fmt.Sprintf(`{"model":"tesseract","messages":[{"role":"system","content":"look"},{"role":"user","content":[%s]}]%s}`, strings.Join(parts, ","), rest)
}

func TestParseRequest(t *testing.T) {
	png := imagePart("data:image/png;base64," + onePixel)
	req, err := ParseRequest([]byte(body(`,"max_tokens":5,"max_completion_tokens":9,"stream":true,"stream_options":{"include_usage":true},"seed":1`,
		png, `{"type":"text","text":"what?"}`, imagePart("DATA:image/GIF;name=x;base64,"+strings.TrimRight(onePixel, "=")))))
	if err != nil {
		t.Fatal(err)
	}
	want, err := base64.StdEncoding.DecodeString(onePixel)
	if err != nil {
		t.Fatal(err)
	}
	if len(req.Images) != 2 || !bytes.Equal(req.Images[0].Data, want) || !bytes.Equal(req.Images[1].Data, want) {
		t.Fatalf("%d images, or damaged", len(req.Images))
	}
	if got := req.Images[1].Param; got != "messages[1].content[2].image_url" {
		t.Errorf("the second image's path is %q", got)
	}
	if req.TextBytes != 9 || req.MaxTokens != 9 || !req.Stream || !req.IncludeUsage || req.Format != PlainText {
		t.Errorf("read %+v", req)
	}
}

func TestParseRequestRefuses(t *testing.T) {
	png := imagePart("data:image/png;base64," + onePixel)
	for _, test := range []struct{ name, body, param, code string }{
		{"what is not JSON", `{"model":`, "", ""},
		{"a list", `[]`, "", ""},
		{"no model", `{"messages":[]}`, "model", "missing_required_parameter"},
		{"no messages", `{"model":"m"}`, "messages", "missing_required_parameter"},
		{"a model that is a number", `{"model":3}`, "model", "invalid_type"},
		{"an unknown role", `{"model":"m","messages":[{"role":"root","content":"x"}]}`, "messages[0].role", "invalid_value"},
		{"content that is a number", `{"model":"m","messages":[{"role":"user","content":5}]}`, "messages[0].content", "invalid_type"},
		{"no image", body("", `{"type":"text","text":"hello"}`), "messages", "missing_image"},
		{"an audio part", body("", `{"type":"input_audio"}`), "messages[1].content[0].type", "invalid_value"},
		{"a remote image", body("", `{"type":"text","text":"x"}`, imagePart("https://example.com/a.png")), "messages[1].content[1].image_url", "invalid_image_url"},
		{"a file as an image", body("", imagePart("file:///etc/passwd")), "messages[1].content[0].image_url", "invalid_image_url"},
		{"an image part without a URL", body("", `{"type":"image_url"}`), "messages[1].content[0].image_url", "missing_required_parameter"},
		{"a data URL that is not base64", body("", imagePart("data:image/png,abc")), "messages[1].content[0].image_url", "invalid_image_url"},
		{"a data URL of a PDF", body("", imagePart("data:application/pdf;base64,AAAA")), "messages[1].content[0].image_url", "invalid_image_format"},
		{"damaged base64", body("", imagePart("data:image/png;base64,AA*A")), "messages[1].content[0].image_url", "invalid_base64"},
		{"an empty image", body("", imagePart("data:image/png;base64,")), "messages[1].content[0].image_url", "invalid_base64"},
		{"an image of the system", `{"model":"m","messages":[{"role":"system","content":[` + png + `]}]}`, "messages[0].content[0].image_url", "invalid_value"},
		{"seventeen images", body("", strings.Split(strings.Repeat(png+"\n", MaxImages)+png, "\n")...), "messages", "too_many_images"},
		{"two choices", body(`,"n":2`, png), "n", "unsupported_value"},
		{"a forced tool", body(`,"tool_choice":"required"`, png), "tool_choice", "unsupported_value"},
		{"no room for an answer", body(`,"max_tokens":0`, png), "max_tokens", "integer_below_min_value"},
		{"an unknown format", body(`,"response_format":{"type":"xml"}`, png), "response_format.type", "unsupported_value"},
		{"a schema that is missing", body(`,"response_format":{"type":"json_schema"}`, png), "response_format.json_schema", "missing_required_parameter"},
		{"a schema of another kind", body(`,"response_format":{"type":"json_schema","json_schema":{"name":"invoice","schema":{"type":"object","properties":{"total":{}}}}}`, png), "response_format", "unsupported_json_schema"},
		{"a schema that is a string", body(`,"response_format":{"type":"json_schema","json_schema":{"name":"visual_observation_v1","schema":"x"}}`, png), "response_format", "invalid_json_schema"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := ParseRequest([]byte(test.body))
			got, ok := errors.AsType[*Error](err)
			if !ok {
				t.Fatalf("got %v", err)
			}
			if got.Status != 400 || text(got.Param) != test.param || text(got.Code) != test.code {
				t.Errorf("got status %d, param %q, code %q: %s", got.Status, text(got.Param), text(got.Code), got.Message)
			}
			if strings.Contains(got.Message, onePixel) || strings.Contains(got.Message, "example.com") {
				t.Errorf("the message repeats the request: %s", got.Message)
			}
		})
	}
}

func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

func TestFormatsThatAreAnsweredWithTheObject(t *testing.T) {
	png := imagePart("data:image/png;base64," + onePixel)
	nine := `{"type":"object","properties":{"type":{},"schema":{},"summary":{},"ocr":{},"elements":{},"relations":{},"issues":{},"uncertainties":{},"external_sources":{}}}`
	for name, format := range map[string]string{
		"a JSON object":                            `{"type":"json_object"}`,
		"the schema by its name alone":             `{"type":"json_schema","json_schema":{"name":"visual_observation_v1"}}`,
		"a schema of another name with the keys":   `{"type":"json_schema","json_schema":{"name":"seen","schema":` + nine + `}}`,
		"the keys behind a reference":              `{"type":"json_schema","json_schema":{"name":"seen","schema":{"$ref":"#/$defs/o","$defs":{"o":` + nine + `}}}}`,
		"the schema's name and a schema of no use": `{"type":"json_schema","json_schema":{"name":"visual_observation_v1","schema":null}}`,
	} {
		t.Run(name, func(t *testing.T) {
			req, err := ParseRequest([]byte(body(`,"response_format":`+format, png)))
			if err != nil || req.Format != Object {
				t.Errorf("got %+v, %v", req, err)
			}
		})
	}
}

func FuzzParseRequest(f *testing.F) {
	png := imagePart("data:image/png;base64," + onePixel)
	f.Add([]byte(body("", png)))
	f.Add([]byte(body(`,"response_format":{"type":"json_schema","json_schema":{"name":"visual_observation_v1","schema":{"type":"object"}}},"max_tokens":10`, png)))
	f.Add([]byte(`{"model":"m","messages":[{"role":"user","content":"x"},{"role":"assistant","content":null}],"tool_choice":"auto"}`))
	f.Add([]byte(`{"model":"m","messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:;base64,"}}]}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		req, err := ParseRequest(data)
		if err != nil {
			if refused, ok := errors.AsType[*Error](err); !ok || refused.Status != 400 || refused.Message == "" {
				t.Fatalf("got %v", err)
			}
			return
		}
		if len(req.Images) == 0 || len(req.Images) > MaxImages || req.Model == "" || req.MaxTokens < 0 {
			t.Fatalf("accepted %+v", req)
		}
	})
}
