// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// gemini is Gemini's generateContent, streamGenerateContent and countTokens.
type gemini struct{}

func badArgument(message string) *refusal {
	return &refusal{status: http.StatusBadRequest, kind: "INVALID_ARGUMENT", message: message}
}

func (gemini) unknown(p place, key string) *refusal {
	at := ""
	if p.text != "" {
		at = " at '" + p.text + "'"
	}
	return badArgument("Invalid JSON payload received. Unknown name \"" + key + "\"" + at + ": Cannot find field.")
}

func (gemini) missing(p place, key string) *refusal {
	return badArgument("* GenerateContentRequest." + p.key(key).text + ": required field is not specified")
}

func (gemini) wrong(p place, want string) *refusal {
	return badArgument("Invalid value at '" + p.text + "': expected " + want)
}

func (gemini) refuse(w http.ResponseWriter, r *refusal) {
	kind := r.kind
	switch r.status {
	case http.StatusNotFound:
		kind = "NOT_FOUND"
	case http.StatusUnauthorized:
		kind = "UNAUTHENTICATED"
	case http.StatusBadRequest:
	default:
		kind = r.code
	}
	writeJSON(w, r.status, map[string]any{"error": map[string]any{"code": r.status, "message": r.message, "status": kind}})
}

func (gemini) credential(r *http.Request) string { return r.Header.Get("X-Goog-Api-Key") }

func (gemini) list(w http.ResponseWriter) {
	writeJSON(w, http.StatusOK, map[string]any{"models": []any{map[string]any{
		"name": "models/gemini-3-pro", "version": "001", "inputTokenLimit": 1_048_576, "outputTokenLimit": 65_536,
		"supportedGenerationMethods": []string{"generateContent", "countTokens"},
	}}})
}

const (
	contentMembers = `contents! systemInstruction tools toolConfig generationConfig safetySettings cachedContent labels serviceTier store model`
	partMembers    = `text inlineData fileData functionCall functionResponse executableCode codeExecutionResult thought thoughtSignature
		mediaResolution videoMetadata partMetadata mediaProcessing toolCall toolResponse`
)

var geminiVersion = regexp.MustCompile(`gemini-(\d+)`)

// geminiTurn is what a body says so far.
type geminiTurn struct {
	*reader
	h       *heard
	version int
	calls   int  // function calls of the content before, which wait for their answers
	began   bool // a content was read
	last    struct{ human, answers bool }
}

func (g gemini) hear(s *Server, r *http.Request, body []byte) *heard {
	t := &geminiTurn{reader: &reader{words: g}, h: &heard{idSize: 8, nameless: s.options.Nameless}, version: 3}
	model, method, ok := strings.Cut(strings.TrimPrefix(r.URL.Path, "/v1beta/models/"), ":")
	if !ok || !slices.Contains([]string{"generateContent", "streamGenerateContent", "countTokens"}, method) {
		panic(&refusal{status: http.StatusNotFound, message: "Not Found"})
	}
	t.h.model, t.h.counting = model, method == "countTokens"
	t.h.stream, t.h.framed = method == "streamGenerateContent", r.URL.Query().Get("alt") == "sse"
	if m := geminiVersion.FindStringSubmatch(model); m != nil {
		t.version, _ = strconv.Atoi(m[1])
	}
	if s.options.TextOnly {
		t.textOnly = func(place) *refusal { return badArgument("Image input modality is not enabled for models/" + model) }
	}
	if t.h.counting {
		body = counted(t, body)
	}
	o, raws := t.document(body, "contents")
	t.only(place{}, o, contentMembers)
	t.h.base = canonical(encoded([]any{o["systemInstruction"], o["tools"]}))
	contents := t.list(place{text: "contents"}, o["contents"])
	if len(contents) == 0 {
		panic(badArgument("* GenerateContentRequest.contents: contents is not specified"))
	}
	for i, content := range contents {
		t.reader.message = i
		t.listen(i, content)
		t.h.hold(raws[i], true)
	}
	if t.calls > 0 {
		panic(badArgument(unequal))
	}
	t.h.images = t.images
	return t.h
}

// counted is the request of which tokens are to be counted: the body, or a member of it.
func counted(t *geminiTurn, body []byte) []byte {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(body, &members); err != nil {
		panic(t.wrong(place{}, "JSON"))
	}
	if whole, ok := members["generateContentRequest"]; ok {
		return whole
	}
	return body
}

const unequal = "Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn."

// listen reads one content.
func (t *geminiTurn) listen(i int, v any) {
	p := place{text: "contents"}.at(i)
	o := t.object(p, v, "role parts")
	role := "user"
	if _, ok := o["role"]; ok {
		if role = member(o, "role"); role != "user" && role != "model" {
			panic(badArgument("Please use a valid role: user, model."))
		}
	}
	if o["parts"] == nil {
		panic(badArgument("* GenerateContentRequest." + p.key("parts").text + ": contents.parts must not be empty."))
	}
	parts := t.list(p.key("parts"), o["parts"])
	if len(parts) == 0 {
		panic(badArgument("* GenerateContentRequest." + p.key("parts").text + ": contents.parts must not be empty."))
	}
	if role == "model" {
		t.said(i, p, parts)
	} else {
		t.asked(p, parts)
	}
	t.began = true
}

// part reads what parts of both roles have in common: exactly one kind of data.
func (t *geminiTurn) part(p place, v any) map[string]any {
	o := t.object(p, v, partMembers)
	kinds := 0
	for _, kind := range []string{"text", "inlineData", "fileData", "functionCall", "functionResponse", "executableCode", "codeExecutionResult", "toolCall", "toolResponse"} {
		if _, ok := o[kind]; ok {
			kinds++
		}
	}
	if kinds != 1 {
		panic(badArgument("* GenerateContentRequest." + p.text + ".data: required oneof field 'data' must have one initialized field"))
	}
	if text, ok := o["text"]; ok {
		t.text(p.key("text"), text)
	}
	if blob, ok := o["inlineData"]; ok {
		t.blob(p, blob, "image/png image/jpeg image/webp image/gif image/heic image/heif application/pdf text/plain")
	}
	if file, ok := o["fileData"].(map[string]any); ok {
		t.only(p.key("file_data"), file, "fileUri! mimeType displayName")
		t.saw(p, Image{URL: member(file, "fileUri"), MediaType: member(file, "mimeType")})
	}
	return o
}

// said reads a content of the model's.
func (t *geminiTurn) said(i int, p place, parts []any) {
	if t.calls > 0 {
		panic(badArgument(unequal))
	}
	t.h.turns++
	for n, v := range parts {
		at := p.key("parts").at(n)
		o := t.part(at, v)
		if _, ok := o["functionResponse"]; ok {
			panic(badArgument("Please ensure that function response turn comes immediately after a function call turn."))
		}
		signature := member(o, "thoughtSignature")
		if signature != "" {
			t.seal(i, at, signature)
		}
		if call, ok := o["functionCall"]; ok {
			c := t.object(at.key("function_call"), call, "id name! args partialArgs willContinue")
			if t.calls == 0 && signature == "" && t.version >= 3 {
				panic(badArgument("Function call is missing a thought_signature in functionCall parts. This is required for tools to work correctly, and missing thought_signature may lead to degraded model performance. Additional data, function call `default_api:" + member(c, "name") + "` , position " + itoa(i+1) + "."))
			}
			t.calls++
		}
	}
	if t.calls > 0 && !t.last.human && !t.last.answers {
		panic(badArgument("Please ensure that function call turn comes immediately after a user turn or after a function response turn."))
	}
	t.last.human, t.last.answers = false, false
}

// waived are the words in the place of a signature with which the vendor lets
// calls pass that have none.
var waived = []string{"skip_thought_signature_validator", "context_engineering_is_the_way_to_go"}

func (t *geminiTurn) seal(i int, p place, signature string) {
	raw, err := geminiBytes(signature)
	if err != nil {
		panic(badArgument("Invalid value at '" + p.text + ".thought_signature' (TYPE_BYTES), Base64 decoding failed for \"" + shortened([]byte(signature)) + "\""))
	}
	if slices.Contains(waived, signature) || slices.Contains(waived, string(raw)) {
		return
	}
	t.h.seals = append(t.h.seals, seal{place: p.text, signature: base64.StdEncoding.EncodeToString(raw), before: i})
}

// geminiBytes reads bytes as the vendor's JSON has them: of either alphabet.
func geminiBytes(text string) ([]byte, error) {
	text = strings.NewReplacer("-", "+", "_", "/").Replace(strings.TrimRight(text, "="))
	return base64.RawStdEncoding.DecodeString(text)
}

// asked reads a content of the user's.
func (t *geminiTurn) asked(p place, parts []any) {
	answers, others := 0, 0
	text := ""
	for n, v := range parts {
		at := p.key("parts").at(n)
		o := t.part(at, v)
		switch {
		case o["functionResponse"] != nil:
			answers++
			t.answer(at, o["functionResponse"])
		case o["functionCall"] != nil:
			panic(badArgument("Please ensure that function call turn comes immediately after a user turn or after a function response turn."))
		default:
			others++
			if text == "" {
				text = member(o, "text")
			}
		}
	}
	if answers > 0 && t.calls == 0 {
		panic(badArgument("Please ensure that function response turn comes immediately after a function call turn."))
	}
	if answers != t.calls || answers > 1 && others > 0 {
		panic(badArgument(unequal))
	}
	t.calls = 0
	t.last.human, t.last.answers = others > 0, answers > 0
	if t.h.opening == "" {
		t.h.opening = text
	}
}

// answer reads the answer to a call.
func (t *geminiTurn) answer(p place, v any) {
	at := p.key("function_response")
	o := t.object(at, v, "id name! response! parts willContinue scheduling")
	if _, ok := o["response"].(map[string]any); !ok {
		panic(t.wrong(at.key("response"), "an object"))
	}
	if o["parts"] == nil {
		return
	}
	if t.version < 3 {
		panic(badArgument("Multimodal function responses are not supported by models/" + t.h.model + "."))
	}
	t.inResult = true
	for n, part := range t.list(at.key("parts"), o["parts"]) {
		inner := at.key("parts").at(n)
		piece := t.object(inner, part, "inlineData fileData mediaProcessing")
		if blob, ok := piece["inlineData"]; ok {
			t.blob(inner, blob, "image/png image/jpeg image/webp application/pdf text/plain")
		}
	}
	t.inResult = false
}

// blob reads bytes with their type.
func (t *geminiTurn) blob(p place, v any, types string) {
	at := p.key("inline_data")
	o := t.object(at, v, "mimeType! data! displayName")
	declared := t.text(at.key("mime_type"), o["mimeType"])
	raw, err := geminiBytes(t.text(at.key("data"), o["data"]))
	if err != nil {
		panic(badArgument("Invalid value at '" + at.key("data").text + "' (TYPE_BYTES), Base64 decoding failed"))
	}
	if !slices.Contains(strings.Fields(types), declared) {
		panic(badArgument("Unsupported MIME type: " + declared))
	}
	if !strings.HasPrefix(declared, "image/") {
		return
	}
	if kind := mediaType(raw); kind == "" && !bytes.Contains(raw[:min(len(raw), 12)], []byte("ftyp")) {
		panic(badArgument("Unable to process input image. Please retry or report in https://developers.generativeai.google/guide/troubleshooting"))
	}
	t.saw(p, picture(raw, declared))
}

func (gemini) forged(_ *heard, s seal) *refusal {
	return badArgument("Thought signature is not valid: " + s.place + ".")
}
