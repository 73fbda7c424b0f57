// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package upstream_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"image"
	"image/png"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/visionoperator/vision-operator/test/upstream"
)

// pixel is an image of one shade, in standard base64.
func pixel(t *testing.T, shade uint8) string {
	t.Helper()
	picture := image.NewGray(image.Rect(0, 0, 4, 4))
	for i := range picture.Pix {
		picture.Pix[i] = shade
	}
	var out bytes.Buffer
	if err := png.Encode(&out, picture); err != nil {
		t.Fatal(err)
	}
	return base64.StdEncoding.EncodeToString(out.Bytes())
}

// served starts a server and is a function that posts to it.
func served(t *testing.T, options upstream.Options) (*upstream.Server, func(path, body string, headers ...string) (int, string)) {
	t.Helper()
	s := upstream.New(options)
	h := httptest.NewServer(s)
	t.Cleanup(h.Close)
	return s, func(path, body string, headers ...string) (int, string) {
		t.Helper()
		r, err := http.NewRequest(http.MethodPost, h.URL+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Anthropic-Version", "2023-06-01")
		for i := 0; i+1 < len(headers); i += 2 {
			r.Header.Set(headers[i], headers[i+1])
		}
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		answer, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		return response.StatusCode, string(answer)
	}
}

// refused is one bad body: the good one with a piece replaced.
type refused struct {
	name, old, new string
	want           string // in the error's message
}

// refuses posts the good body, which is answered, and every bad one, which is not.
func refuses(t *testing.T, options upstream.Options, path, good string, bad []refused) {
	t.Helper()
	_, post := served(t, options)
	if status, answer := post(path, good); status != http.StatusOK {
		t.Fatalf("the good body is answered with %d %s", status, answer)
	}
	for _, tc := range bad {
		t.Run(tc.name, func(t *testing.T) {
			body := strings.Replace(good, tc.old, tc.new, 1)
			if body == good {
				t.Fatalf("%q is not in the good body", tc.old)
			}
			if !json.Valid([]byte(body)) {
				t.Fatalf("the body is no JSON: %s", body)
			}
			status, answer := post(path, body)
			if status/100 != 4 || !strings.Contains(message(t, answer), tc.want) {
				t.Errorf("%d %s\nwant %q", status, answer, tc.want)
			}
		})
	}
}

// message is the message of an error in any of the dialects.
func message(t *testing.T, answer string) string {
	t.Helper()
	var document struct{ Error struct{ Message string } }
	if err := json.Unmarshal([]byte(answer), &document); err != nil {
		t.Fatalf("%v in %s", err, answer)
	}
	return document.Error.Message
}

func TestChatRefuses(t *testing.T) {
	good := fmt.Sprintf(`{"model":"gpt-5.1","messages":[
{"role":"system","content":"s"},
{"role":"user","content":[{"type":"text","text":"hello"},{"type":"image_url","image_url":{"url":"data:image/png;base64,%s","detail":"auto"}}]},
{"role":"assistant","content":null,"tool_calls":[{"id":"call_1","type":"function","function":{"name":"f","arguments":"{}"}},{"id":"call_2","type":"function","function":{"name":"g","arguments":"{}"}}]},
{"role":"tool","tool_call_id":"call_1","content":"one"},
{"role":"tool","tool_call_id":"call_2","content":[{"type":"text","text":"two"}]},
{"role":"user","content":"and now?"}]}`, pixel(t, 1))
	refuses(t, upstream.Options{}, "/v1/chat/completions", good, []refused{
		{"an unknown member of the request", `"model":`, `"strange":1,"model":`, "Unknown parameter: 'strange'"},
		{"an unknown member of a message", `"tool_call_id":"call_1"`, `"strange":1,"tool_call_id":"call_1"`, "Unknown parameter: 'messages[3].strange'"},
		{"an unknown member of a part", `"text":"hello"`, `"text":"hello","strange":1`, "messages[1].content[0].strange"},
		{"an unknown member of an image", `"detail":`, `"strange":1,"detail":`, "messages[1].content[1].image_url.strange"},
		{"an unknown member of a call", `{"id":"call_1"`, `{"strange":1,"id":"call_1"`, "messages[2].tool_calls[0].strange"},
		{"an unknown role", `"role":"system"`, `"role":"narrator"`, "messages[0].role"},
		{"an image in a tool message", `[{"type":"text","text":"two"}]`, `[{"type":"image_url","image_url":{"url":"https://a/b.png"}}]`, "this message with role 'tool' contains an image URL"},
		{"an image in a system message", `"content":"s"`, `"content":[{"type":"image_url","image_url":{"url":"https://a/b.png"}}]`, "this message with role 'system' contains an image URL"},
		{"a call without its answer", `{"role":"tool","tool_call_id":"call_1","content":"one"},`, ``, "did not have response messages: call_1"},
		{"a user message among the answers", `{"role":"tool","tool_call_id":"call_2"`, `{"role":"user","content":"!"},{"role":"tool","tool_call_id":"call_2"`, "did not have response messages: call_2"},
		{"an answer to no call", `"tool_call_id":"call_2"`, `"tool_call_id":"call_3"`, "must be a response to a preceding message"},
		{"an empty content", `[{"type":"text","text":"two"}]`, `[]`, "empty array"},
		{"base64 of the alphabet for URLs", `;base64,`, `;base64,-_-_`, "Invalid base64"},
		{"base64 with white space", `;base64,`, `;base64,\n`, "Invalid base64"},
		{"a type that is none", `data:image/png;`, `data:image/tiff;`, "unsupported image"},
		{"a data URL without a comma", `;base64,`, `;base64;`, "Expected a valid URL"},
		{"a missing content", `,"content":"one"`, ``, "Missing required parameter"},
	})
}

func TestMistralRefuses(t *testing.T) {
	good := `{"model":"mistral-large","messages":[{"role":"user","content":"hello"},
{"role":"assistant","content":"","tool_calls":[{"id":"abcdefgh1","type":"function","function":{"name":"f","arguments":"{}"}}]},
{"role":"tool","tool_call_id":"abcdefgh1","name":"f","content":"one"},{"role":"assistant","content":"so"},{"role":"user","content":"and now?"}]}`
	refuses(t, upstream.Options{Mistral: true}, "/v1/chat/completions", good, []refused{
		{"a user message after a tool message", `{"role":"assistant","content":"so"},`, ``, "Unexpected role 'user' after role 'tool'"},
		{"a call without its answer", `{"role":"tool","tool_call_id":"abcdefgh1","name":"f","content":"one"},`, ``, "Not the same number"},
		{"an image in a tool message", `"content":"one"`, `"content":[{"type":"image_url","image_url":"https://a/b.png"}]`, "role 'tool' contains an image URL"},
	})
	_, post := served(t, upstream.Options{Mistral: true, ToolImages: true})
	body := strings.Replace(good, `"content":"one"`, `"content":[{"type":"image_url","image_url":"https://a/b.png"}]`, 1)
	if status, answer := post("/v1/chat/completions", body); status != http.StatusOK {
		t.Errorf("an image in a tool message, where it is accepted: %d %s", status, answer)
	}
}

func TestAnthropicRefuses(t *testing.T) {
	image := `{"type":"image","source":{"type":"base64","media_type":"image/png","data":"` + pixel(t, 1) + `"}}`
	marked := `"cache_control":{"type":"ephemeral"}`
	good := `{"model":"claude-opus-5","max_tokens":10,"system":[{"type":"text","text":"s",` + marked + `}],"messages":[
{"role":"user","content":[{"type":"text","text":"hello",` + marked + `},` + image + `]},
{"role":"assistant","content":[{"type":"tool_use","id":"toolu_1","name":"f","input":{}},{"type":"tool_use","id":"toolu_2","name":"g","input":{}}]},
{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","is_error":true,"content":[{"type":"text","text":"one"}]},{"type":"tool_result","tool_use_id":"toolu_2","content":[` + image + `]},{"type":"text","text":"two",` + marked + `}]},
{"role":"assistant","content":"so"},{"role":"user","content":"and now?"}]}`
	refuses(t, upstream.Options{}, "/v1/messages", good, []refused{
		{"an unknown member of the request", `"max_tokens"`, `"strange":1,"max_tokens"`, "strange: Extra inputs are not permitted"},
		{"an unknown member of a message", `{"role":"assistant","content":"so"`, `{"id":"m","role":"assistant","content":"so"`, "messages.3.id: Extra inputs are not permitted"},
		{"an unknown member of a block", `"text":"hello"`, `"text":"hello","strange":1`, "messages.0.content.0.strange: Extra inputs"},
		{"an unknown member of a source", `"media_type"`, `"strange":1,"media_type"`, "source.strange: Extra inputs"},
		{"an unknown member of a result", `"is_error"`, `"strange":1,"is_error"`, "messages.2.content.0.strange: Extra inputs"},
		{"a system message", `{"role":"assistant","content":"so"}`, `{"role":"system","content":"so"}`, `Unexpected role "system"`},
		{"an assistant message first", `"messages":[`, `"messages":[{"role":"assistant","content":"x"},`, "first message must use"},
		{"a text before the results", `{"type":"tool_result","tool_use_id":"toolu_1"`, `{"type":"text","text":"x"},{"type":"tool_result","tool_use_id":"toolu_1"`, "without `tool_result` blocks immediately after: toolu_1"},
		{"a text among the results", `{"type":"tool_result","tool_use_id":"toolu_2"`, `{"type":"text","text":"x"},{"type":"tool_result","tool_use_id":"toolu_2"`, "without `tool_result` blocks immediately after: toolu_2"},
		{"a call without its result", `{"type":"tool_use","id":"toolu_1"`, `{"type":"tool_use","id":"toolu_0","name":"h","input":{}},{"type":"tool_use","id":"toolu_1"`, "immediately after: toolu_0"},
		{"a result without its call", `"tool_use_id":"toolu_2"`, `"tool_use_id":"toolu_3"`, "unexpected `tool_use_id` found in `tool_result` blocks: toolu_3"},
		{"an empty text", `"text":"hello"`, `"text":""`, "text content blocks must be non-empty"},
		{"a text of white space", `"text":"hello"`, `"text":" \n"`, "non-whitespace"},
		{"an empty message", `"content":"and now?"`, `"content":""`, "non-empty content"},
		{"an error with an image", `[{"type":"text","text":"one"}]`, `[` + image + `]`, "all content must be type \"text\" if `is_error` is true"},
		{"five marks for the cache", `"input":{}},{`, `"input":{},` + marked + `},{` + marked + `,`, "Found 5"},
		{"a type that is not the bytes'", `"media_type":"image/png"`, `"media_type":"image/jpeg"`, "specified using the image/jpeg media type, but the image appears to be a image/png"},
		{"a type that is none", `"media_type":"image/png"`, `"media_type":"image/tiff"`, "Input should be one of"},
		{"base64 of the alphabet for URLs", `"data":"`, `"data":"-_-_`, "invalid base64 data"},
		{"base64 with white space", `"data":"`, `"data":"\n`, "invalid base64 data"},
		{"bytes that are no image", `"data":"`, `"data":"AAAA`, "Could not process image"},
		{"a block of no type", `"type":"text","text":"two"`, `"type":"txt","text":"two"`, "Input tag 'txt'"},
		{"an image of the assistant's", `"content":"so"`, `"content":[` + image + `]`, "does not match any of the expected tags"},
		{"a call of the user's", `"content":"and now?"`, `"content":[{"type":"tool_use","id":"x","name":"f","input":{}}]`, "can only be in `assistant` messages"},
		{"no limit of tokens", `"max_tokens":10,`, ``, "max_tokens: Field required"},
		{"reasoning of another", `"content":[{"type":"tool_use","id":"toolu_1"`, `"content":[{"type":"thinking","thinking":"x","signature":"eA=="},{"type":"tool_use","id":"toolu_1"`, "messages.1.content.0: Invalid `signature` in `thinking` block"},
		{"a binding without its header", `"max_tokens"`, `"thinking":{"type":"adaptive","block_binding":{"prefix_mismatch_behavior":"drop_block"}},"max_tokens"`, "thinking.block_binding: Extra inputs"},
	})
}

func TestGeminiRefuses(t *testing.T) {
	blob := `{"inlineData":{"mimeType":"image/png","data":"` + pixel(t, 1) + `"}}`
	good := `{"systemInstruction":{"parts":[{"text":"s"}]},"contents":[
{"role":"user","parts":[{"text":"hello"},` + blob + `]},
{"role":"model","parts":[{"functionCall":{"id":"a","name":"f","args":{}},"thoughtSignature":"skip_thought_signature_validator"},{"functionCall":{"name":"g","args":{}}}]},
{"role":"user","parts":[{"functionResponse":{"id":"a","name":"f","response":{"output":"one"},"parts":[` + blob + `]}},{"functionResponse":{"name":"g","response":{"output":"two"}}}]},
{"role":"model","parts":[{"functionCall":{"name":"f","args":{}},"thoughtSignature":"skip_thought_signature_validator"}]},
{"role":"user","parts":[{"functionResponse":{"name":"f","response":{"output":"three"}}},{"text":"and now?"}]}]}`
	const path = "/v1beta/models/gemini-3-pro:generateContent"
	refuses(t, upstream.Options{}, path, good, []refused{
		{"an unknown member of the request", `"systemInstruction"`, `"strange":1,"systemInstruction"`, `Unknown name "strange": Cannot find field`},
		{"an unknown member of a content", `{"role":"model"`, `{"strange":1,"role":"model"`, `Unknown name "strange" at 'contents[1]'`},
		{"an unknown member of a part", `{"text":"hello"`, `{"strange":1,"text":"hello"`, `Unknown name "strange" at 'contents[0].parts[0]'`},
		{"an unknown member of a blob", `"mimeType"`, `"strange":1,"mimeType"`, `at 'contents[0].parts[1].inline_data'`},
		{"an unknown member of an answer", `{"id":"a","name":"f","response"`, `{"strange":1,"id":"a","name":"f","response"`, `at 'contents[2].parts[0].function_response'`},
		{"a wrong role", `{"role":"user","parts":[{"text":"hello"}`, `{"role":"assistant","parts":[{"text":"hello"}`, "Please use a valid role"},
		{"a part of two kinds", `{"text":"hello"`, `{"inlineData":{},"text":"hello"`, "oneof field"},
		{"too few answers", `,{"functionResponse":{"name":"g","response":{"output":"two"}}}`, ``, "number of function response parts"},
		{"a text beside two answers", `{"functionResponse":{"name":"g","response":{"output":"two"}}}`, `{"functionResponse":{"name":"g","response":{"output":"two"}}},{"text":"x"}`, "number of function response parts"},
		{"an answer to no call", `{"text":"hello"}`, `{"functionResponse":{"name":"g","response":{}}}`, "comes immediately after a function call turn"},
		{"a call without its signature", `"thoughtSignature":"skip_thought_signature_validator"},{"functionCall"`, `"thought":false},{"functionCall"`, "missing a thought_signature"},
		{"a signature of another", `"thoughtSignature":"skip_thought_signature_validator"},{"functionCall"`, `"thoughtSignature":"eA=="},{"functionCall"`, "Thought signature is not valid"},
		{"base64 that is none", `"data":"`, `"data":"!`, "Base64 decoding failed"},
		{"bytes that are no image", `"data":"`, `"data":"AAAA`, "Unable to process input image"},
		{"an unknown type", `"mimeType":"image/png"`, `"mimeType":"image/tiff"`, "Unsupported MIME type"},
	})
	older := strings.Replace(good, `,"parts":[`+blob+`]}`, `}`, 1)
	refuses(t, upstream.Options{}, "/v1beta/models/gemini-2.5-pro:generateContent", older, []refused{
		{"an image in an answer", `"response":{"output":"one"}`, `"response":{"output":"one"},"parts":[` + blob + `]`, "Multimodal function responses are not supported"},
	})
	unsigned := strings.ReplaceAll(older, `,"thoughtSignature":"skip_thought_signature_validator"`, ``)
	refuses(t, upstream.Options{}, "/v1beta/models/gemini-2.5-pro:generateContent", unsigned, nil)
}

func TestResponsesRefuses(t *testing.T) {
	image := `{"type":"input_image","detail":"auto","image_url":"data:image/png;base64,` + pixel(t, 1) + `"}`
	good := `{"model":"gpt-5.1","store":false,"input":[
{"role":"user","content":[{"type":"input_text","text":"hello"},` + image + `]},
{"type":"function_call","call_id":"call_1","name":"f","arguments":"{}"},
{"type":"custom_tool_call","call_id":"call_2","name":"g","input":"x"},
{"type":"function_call_output","call_id":"call_1","output":[{"type":"input_text","text":"one"},` + image + `]},
{"type":"custom_tool_call_output","call_id":"call_2","output":"two"},
{"type":"message","role":"assistant","content":[{"type":"output_text","text":"so"}]},
{"role":"user","content":"and now?"}]}`
	refuses(t, upstream.Options{}, "/v1/responses", good, []refused{
		{"an unknown member of the request", `"model"`, `"strange":1,"model"`, "Unknown parameter: 'strange'"},
		{"an unknown member of an item", `"type":"function_call"`, `"strange":1,"type":"function_call"`, "Unknown parameter: 'input[1].strange'"},
		{"an unknown member of a part", `{"type":"input_text","text":"one"`, `{"strange":1,"type":"input_text","text":"one"`, "Unknown parameter: 'input[3].output[0].strange'"},
		{"an unknown member of an image", `"detail"`, `"strange":1,"detail"`, "input[0].content[1].strange"},
		{"an item of no type", `"type":"function_call"`, `"type":"tool_call"`, "Invalid value: 'tool_call'"},
		{"an output without its call", `"call_id":"call_1","output"`, `"call_id":"call_3","output"`, "No tool call found for function call output with call_id call_3"},
		{"a call without its output", `{"type":"custom_tool_call_output","call_id":"call_2","output":"two"},`, ``, "No tool output found for function call call_2"},
		{"an image in a message of the assistant's", `{"type":"output_text","text":"so"}`, image, "Supported values are: 'output_text', 'refusal'"},
		{"a part of chat completions", `"type":"input_text","text":"hello"`, `"type":"text","text":"hello"`, "Invalid value: 'text'"},
		{"a response that nobody has", `"store":false`, `"previous_response_id":"resp_0"`, "Previous response with id 'resp_0' not found"},
		{"an item that nobody has", `{"role":"user","content":"and now?"}`, `{"type":"item_reference","id":"msg_0"}`, "Item with id 'msg_0' not found"},
		{"reasoning of another", `{"type":"function_call"`, `{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"eA=="},{"type":"function_call"`, "could not be verified"},
		{"reasoning that nobody keeps", `{"type":"function_call"`, `{"type":"reasoning","id":"rs_1","summary":[]},{"type":"function_call"`, "Item with id 'rs_1' not found"},
		{"base64 with white space", `;base64,`, `;base64,\n`, "Invalid base64"},
		{"a wrong role", `"role":"assistant"`, `"role":"tool"`, "input[5].role"},
	})
}

func TestTextOnlyModelsRefuseEveryImage(t *testing.T) {
	_, post := served(t, upstream.Options{TextOnly: true})
	data := pixel(t, 1)
	for path, body := range map[string]string{
		"/v1/chat/completions": `{"model":"m","messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,%s"}}]}]}`,
		"/v1/responses":        `{"model":"m","input":[{"role":"user","content":[{"type":"input_image","image_url":"data:image/png;base64,%s"}]}]}`,
		"/v1/messages":         `{"model":"m","max_tokens":1,"messages":[{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"%s"}}]}]}`,
		"/v1beta/models/gemma-3-1b:generateContent": `{"contents":[{"parts":[{"inlineData":{"mimeType":"image/png","data":"%s"}}]}]}`,
	} {
		if status, answer := post(path, fmt.Sprintf(body, data)); status != http.StatusBadRequest || message(t, answer) == "" {
			t.Errorf("%s: %d %s", path, status, answer)
		}
	}
}

func TestRequestsWithoutTheKeyAreRefused(t *testing.T) {
	s, post := served(t, upstream.Options{Key: "secret"})
	for path, header := range map[string][2]string{
		"/v1/chat/completions":                    {"Authorization", "Bearer secret"},
		"/v1/messages/count_tokens":               {"X-Api-Key", "secret"},
		"/v1/messages/count_tokens?beta=true":     {"Authorization", "Bearer secret"},
		"/v1beta/models/gemini-3-pro:countTokens": {"X-Goog-Api-Key", "secret"},
	} {
		body := `{"model":"m","messages":[{"role":"user","content":"x"}]}`
		if strings.Contains(path, "gemini") {
			body = `{"contents":[{"parts":[{"text":"x"}]}]}`
		}
		if status, answer := post(path, body); status != http.StatusUnauthorized {
			t.Errorf("%s without: %d %s", path, status, answer)
		}
		if status, answer := post(path, body, header[0], header[1]); status != http.StatusOK {
			t.Errorf("%s with: %d %s", path, status, answer)
		}
	}
	if got := len(s.Refusals()); got != 4 {
		t.Errorf("%d refusals are kept", got)
	}
}
