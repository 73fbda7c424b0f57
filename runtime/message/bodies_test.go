// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package message

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
)

// The dialects' bodies of the tests: a question with an image, an answer with
// calls at once, their results, and more of it, in as many forms as the vendors
// document. PNG stands for base64; %F for facts.
var bodies = map[Dialect][]string{
	OpenAIChat: {
		`{"model":"gpt-5.1","max_completion_tokens":1024,"messages":[
			{"role":"developer","content":"Be brief."},
			{"role":"user","content":[
				{"type":"text","text":"What is in these?"},
				{"type":"image_url","image_url":{"url":"data:image/png;base64,PNG","detail":"High"}},
				{"type":"image_url","image_url":{"url":"https://example.com/a.png"}},
				{"type":"image_url","image_url":"DATA:IMAGE/JPEG;charset=utf-8;BASE64,PNG"},
				{"type":"input_audio","input_audio":{"data":"QUJD","format":"wav"}},
				{"type":"file","file":{"filename":"a.pdf","file_data":"data:application/pdf;base64,QUJD"}}]},
			{"role":"assistant","content":null,"tool_calls":[
				{"id":"call_1","type":"function","function":{"name":"view_image","arguments":"{\"path\":\"a.png\"}"}},
				{"id":"call_2","type":"function","function":{"name":"view_image","arguments":"{\"path\":\"b.png\"}"}}]},
			{"role":"tool","tool_call_id":"call_1","content":"image follows"},
			{"role":"tool","tool_call_id":"call_2","content":[{"type":"text","text":"b"},{"type":"image_url","image_url":{"url":"data:image\/webp;base64,PNG"}}]},
			{"role":"user","content":[{"image_url":{"url":{%F},"detail":"low"},"type":"image_url"},{"type":"image_url","image_url":{%F}},{"type":"image_url"},
				{"type":"text","text":"nothing","image_url":null},{"type":"image_url","image_url":{"url":"ftp://example.com/a"}}]}],
		"tools":[{"type":"function","function":{"name":"view_image","parameters":{"type":"object"}}}],"unknown":{"messages":[1,{"role":2}]}}`,
		`{"messages":[{"role":"function","name":"f","content":"x"},{"content":"no role"},{"role":"critic","content":[]}],"max_tokens":7}`,
		`{"messages":[]}`,
		// Forms that vendors refuse, or that only some servers take.
		`{"messages":[{"role":"user","content":[{"type":"image_url","image_url":5},{"type":"image_url","image_url":{"file_id":"f"}},{"type":"image_url","image_url":{"detail":5}},
			{"image_url":"data:image/png;base64,PNG"},{"type":"image_url","image_url":{"url":{"a":1}}},{"type":"image_url","image_url":"data:image\u002Fpng;bas\u00e94,PNG"},
			{"type":"input_image","file_id":"f"},{"image_url":"data:image/png;name=\u00e9\ud83d\ude00;base64,PNG"},{"type":"text","text":"t","cache_control":null,"a name that is longer than all that matter":[]}]}]}`,
	},
	OpenAIResponses: {
		`{"model":"gpt-5.1","instructions":"Be brief.","max_output_tokens":2048,"input":[
			{"role":"user","content":[{"type":"input_text","text":"Look"},{"type":"input_image","image_url":"data:image/png;base64,PNG","detail":"original"},
				{"type":"input_image","file_id":"file-1","detail":"auto"},{"type":"input_file","file_id":"file-2"},{"type":"input_image","image_url":null,"file_id":null}]},
			{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"gAAAAA"},
			{"type":"function_call","call_id":"c1","name":"view_image","arguments":"{}"},
			{"type":"custom_tool_call","call_id":"c2","name":"shot","input":"now"},
			{"type":"computer_call","call_id":"c3","action":{"type":"screenshot"}},
			{"type":"function_call_output","call_id":"c1","output":[{"type":"input_text","text":"a"},{"type":"input_image","image_url":"data:image/png;base64,PNG"}]},
			{"type":"custom_tool_call_output","call_id":"c2","output":[{"type":"input_image","image_url":{%F}}]},
			{"output":{"type":"computer_screenshot","image_url":"data:image/png;base64,PNG"},"call_id":"c3","type":"computer_call_output"},
			{"type":"function_call_output","call_id":"c4","output":"text"},
			{"type":"image_generation_call","id":"ig_1","status":"completed","result":"PNG"},
			{"type":"message","role":"assistant","content":[{"type":"output_text","text":"I see."}]},
			{"type":"item_reference","id":"msg_1"}],
		"tools":[{"type":"function","name":"view_image","parameters":{}}],"text":{"format":{"type":"text"}}}`,
		`{"model":"gpt-5.1","input":"Hello"}`,
		`{"model":"gpt-5.1","previous_response_id":"resp_1","input":[{"type":"function_call_output","call_id":"c","output":[{"type":"input_image","image_url":"https://example.com/a"}]}]}`,
		`{"prompt":{"id":"pmpt_1"}}`,
		`{"input":[{},{"type":"mcp_approval_response","approve":true},{"role":"user","content":null,"output":null},{"type":"message","role":"user","content":{"type":"input_image","file_id":"f"}}],"tools":null}`,
	},
	AnthropicMessages: {
		`{"model":"claude-opus-4-5","max_tokens":4096,"system":[{"type":"text","text":"Be brief.","cache_control":{"type":"ephemeral"}}],"messages":[
			{"role":"user","content":[
				{"type":"image","source":{"type":"base64","media_type":"image/png","data":"PNG"},"cache_control":{"type":"ephemeral"}},
				{"source":{"data":"PNG","media_type":"image/jpeg","type":"base64"},"type":"image"},
				{"type":"image","source":{"type":"url","url":"https://example.com/a.png"}},
				{"type":"image","source":{"type":"file","file_id":"file_1"}},
				{"type":"image","source":{"type":"facts",%F}},
				{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"QUJD"}},
				{"type":"document","source":{"type":"text","media_type":"text/plain","data":"some text"}},
				{"type":"document","source":{"type":"content","content":[{"type":"text","text":"t"},{"type":"image","source":{"type":"base64","media_type":"image/gif","data":"PNG"}}]}},
				{"type":"text","text":"Look"}]},
			{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"c2ln"},{"type":"redacted_thinking","data":"cmVk"},
				{"type":"tool_use","id":"toolu_1","name":"view_image","input":{"path":"a.png"}},{"type":"tool_use","id":"toolu_2","name":"view_image","input":{"path":"b.png"}}]},
			{"role":"user","content":[
				{"type":"tool_result","tool_use_id":"toolu_1","content":[{"type":"text","text":"a"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"PNG"}}]},
				{"content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":""}}],"is_error":true,"tool_use_id":"toolu_2","type":"tool_result"}]}],
		"tools":[{"name":"view_image","input_schema":{"type":"object"}}]}`,
		`{"messages":[{"role":"user","content":"Hello"},{"role":"assistant","content":"Hi"}],"system":"Be brief.","max_tokens":1}`,
		`{"messages":[{"role":"user","content":[{"type":"image"},{"type":"image","source":{"type":"s3","bucket":"b"}},{"type":"image","source":{"type":"url","url":"data:image/png;base64,PNG"}}]}]}`,
		`{"system":null,"messages":[{"role":"user","content":null},{"role":"assistant","content":[{"type":"web_fetch_tool_result","content":{"type":"web_fetch_result"}}]},
			{"role":"user","content":[{"type":"image","source":null},{"type":"image","source":{"type":"file"}},{"type":"image","source":{"type":"base64","media_type":"image/png"}}]},
			{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":[{"type":"search_result","source":"https://example.com/a","title":"A","content":[{"type":"image","source":{"type":"base64","data":"PNG"}}]}]}]}]}`,
	},
	GeminiContents: {
		`{"systemInstruction":{"parts":[{"text":"Be brief."}]},"generationConfig":{"maxOutputTokens":"512","mediaResolution":"MEDIA_RESOLUTION_LOW"},"contents":[
			{"role":"user","parts":[{"text":"Look"},{"inlineData":{"mimeType":"image/png","data":"PNG"}},
				{"inline_data":{"mime_type":"IMAGE/JPEG","data":"PNG"},"media_resolution":{"level":"MEDIA_RESOLUTION_HIGH"}},
				{"fileData":{"fileUri":"https://generativelanguage.googleapis.com/v1beta/files/a","mimeType":"image/png"}},
				{"file_data":{"file_uri":"gs://bucket/a.png","mime_type":"image/png"}},
				{"fileData":{"fileUri":"https://youtu.be/a"}},{"inlineData":{"mimeType":"application/pdf","data":"QUJD"}},
				{"inlineData":{%F}}]},
			{"role":"model","parts":[{"functionCall":{"id":"f1","name":"view_image","args":{"path":"a.png"}},"thoughtSignature":"c2ln"},{"functionCall":{"name":"view_image","args":{}}}]},
			{"role":"user","parts":[{"functionResponse":{"id":"f1","name":"view_image","response":{"image":{"$ref":"a.png"}},"parts":[{"inlineData":{"mimeType":"image/png","data":"PNG","displayName":"a.png"}}]}},
				{"function_response":{"name":"view_image","response":{"output":"b"},"parts":{"inlineData":{"mimeType":"image/webp","data":"PNG"}}}}]},
			{"role":"function","parts":[{"functionResponse":{"name":"g","response":{}}},{"inlineData":{"mimeType":"image/png","data":"PNG"}}]}],
		"tools":[{"functionDeclarations":[{"name":"view_image"}]}]}`,
		`{"system_instruction":{"parts":{"text":"You are Neko."}},"contents":{"parts":{"inlineData":{"data":"PNG"}}},"generation_config":{"max_output_tokens":1e3}}`,
		`{"contents":[{"parts":null},{"role":"model","parts":[{"inlineData":{"mimeType":"image/png","data":"PNG"}}]}],"generationConfig":null}`,
		`{"contents":[{"role":"system","parts":[{"inlineData":null,"fileData":{"mimeType":"image/png"},"mediaResolution":"MEDIA_RESOLUTION_UNSPECIFIED"}]},{"role":"critic","parts":[{"text":null}]},
			{"parts":[{"inlineData":{"mimeType":"image/png"}},{"fileData":{"mimeType":"image/png","fileUri":""}},{"mediaResolution":{"x":1,"level":"MEDIA_RESOLUTION_ULTRA_HIGH"},"inlineData":{"mimeType":"image/heic; a=b","data":"PNG"}},
			{"functionResponse":{"parts":null}},{"executableCode":{"code":"1"}}]}]}`,
		`{"generateContentRequest":{"model":"models/m","contents":[{"role":"user","parts":[{"text":"a"},{"inlineData":{"mimeType":"image/png","data":"PNG"}}]},
			{"role":"model","parts":[{"functionCall":{"name":"f","args":{}}}]},{"role":"user","parts":[{"functionResponse":{"name":"f","response":{}}}]}],
			"generationConfig":{"mediaResolution":"MEDIA_RESOLUTION_LOW"}}}`,
		`{"generate_content_request":{"contents":{"parts":{"inline_data":{"mime_type":"image/png","data":"PNG"}}},"generateContentRequest":{"contents":[]}}}`,
	},
}

var (
	pixels = bytes.Repeat([]byte{0x89, 'P', 'N', 'G', 0xFB, 0xFF, 0xBF}, 9)
	digest = strings.Repeat("0123456789ABCDEF", 4)
)

// filled puts data and facts into a body of the tests.
func filled(body string) []byte {
	facts := fmt.Sprintf(`"sha256":%q,"bytes":63,"mediaType":"image/png","head":"iVBORw0KGgo="`, digest)
	return []byte(strings.NewReplacer("PNG", base64.StdEncoding.EncodeToString(pixels), "%F", facts).Replace(body))
}

// each calls do with every body of the tests.
func each(do func(d Dialect, n int, body []byte)) {
	for _, d := range Dialects() {
		for n, body := range bodies[d] {
			do(d, n, filled(body))
		}
	}
}

// variants are other ways to write the same JSON.
func variants(body []byte) map[string][]byte {
	var compacted, indented, html, ascii bytes.Buffer
	_ = json.Compact(&compacted, body)
	_ = json.Indent(&indented, body, " ", "\t")
	json.HTMLEscape(&html, body)
	inside, escaped := false, false
	for _, c := range body { // as PHP's json_encode has it, and then some
		switch {
		case inside && !escaped && (c == '/' || c == ':' || c == 'a'):
			ascii.WriteString(map[byte]string{'/': `\/`, ':': `\u003A`, 'a': `\u0061`}[c])
		default:
			ascii.WriteByte(c)
		}
		switch {
		case escaped:
			escaped = false
		case c == '\\':
			escaped = true
		case c == '"':
			inside = !inside
		}
	}
	return map[string][]byte{"compact": compacted.Bytes(), "indented": indented.Bytes(), "for HTML": html.Bytes(), "escaped": ascii.Bytes()}
}
