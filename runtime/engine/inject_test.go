// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/visionoperator/vision-operator/runtime/engine"
	"github.com/visionoperator/vision-operator/runtime/fault"
	"github.com/visionoperator/vision-operator/runtime/message"
	"github.com/visionoperator/vision-operator/runtime/router"
)

// injectedAnswer is an answer as who asks reads it; it knows nothing of ours.
type injectedAnswer struct {
	Decision struct {
		Inject                                    bool
		Reason, Route, Form                       string
		Sights                                    []struct{ ID, CallID, SHA256, Outcome, Reason string }
		Skipped                                   map[string]int
		Injected, Observed, Degraded, Unavailable int
		Warnings                                  []string
	}
	Append json.RawMessage
	Insert []struct {
		Before  int
		Message json.RawMessage
	}
	Remove []int
	Ranges []struct {
		Offset, Length int
		Text           string
	}
	ViewedImages map[string]json.RawMessage
}

// question is the body of a question.
func question(dialect, messages string, more ...string) string {
	return fmt.Sprintf(`{"dialect":%q,"messages":%s%s}`, dialect, messages, strings.Join(append([]string{""}, more...), ","))
}

// inject asks, and reads the answer twice: it is the same.
func (r *rig) inject(body string) (a injectedAnswer, raw string) {
	r.t.Helper()
	i, err := r.engine.Inject(context.Background(), strings.NewReader(body), int64(len(body)))
	must(r.t, err)
	defer i.Release()
	first, err := io.ReadAll(i.Reader())
	must(r.t, err)
	var second bytes.Buffer
	_, err = io.Copy(&second, i.Reader())
	must(r.t, err)
	if int64(len(first)) != i.Len() || !bytes.Equal(first, second.Bytes()) {
		r.t.Errorf("the answer has %d bytes, says %d, and is read as %d", len(first), i.Len(), second.Len())
	}
	must(r.t, json.Unmarshal(first, &a))
	return a, string(first)
}

func (r *rig) uninjected(body string) *fault.Fault {
	r.t.Helper()
	i, err := r.engine.Inject(context.Background(), strings.NewReader(body), int64(len(body)))
	if err == nil {
		i.Release()
		r.t.Fatal("the question was not refused")
	}
	return fault.As(err)
}

// applied applies ranges one after the other.
func applied(t *testing.T, messages string, a *injectedAnswer) string {
	t.Helper()
	for _, e := range a.Ranges {
		if e.Offset < 0 || e.Length < 0 || e.Offset+e.Length > len(messages) {
			t.Fatalf("a range of %d bytes at %d of %d", e.Length, e.Offset, len(messages))
		}
		messages = messages[:e.Offset] + e.Text + messages[e.Offset+e.Length:]
	}
	if !json.Valid([]byte(messages)) {
		t.Errorf("what the ranges make is no JSON: %.400s", messages)
	}
	return messages
}

// called are the messages of a dialect in which view_image was called for a path.
func called(d message.Dialect, path string) string {
	quoted, _ := json.Marshal(path)
	arguments, _ := json.Marshal(fmt.Sprintf(`{"path":%s}`, quoted))
	switch d {
	case message.OpenAIResponses:
		return fmt.Sprintf(`[ {"role":"user","content":"what?"},{"type":"function_call","call_id":"call_abcdef12","name":"view_image","arguments":%s},{"type":"function_call_output","call_id":"call_abcdef12","output":"read"}]`, arguments)
	case message.AnthropicMessages:
		return fmt.Sprintf(`[{"role":"user","content":"what?"},{"role":"assistant","content":[{"type":"tool_use","id":"toolu_abcdef12","name":"view_image","input":{"path":%s}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_abcdef12","content":"read"}]} ]`, quoted)
	case message.GeminiContents:
		return fmt.Sprintf(`[{"role":"user","parts":[{"text":"what?"}]},{"role":"model","parts":[{"functionCall":{"name":"view_image","args":{"path":%s}}}]},{"role":"user","parts":[{"functionResponse":{"name":"view_image","response":{"result":"read"}}}]}]`, quoted)
	}
	return fmt.Sprintf(`[{"role":"user","content":"what?"},{"role":"assistant","tool_calls":[{"id":"call_abcdef12","type":"function","function":{"name":"view_image","arguments":%s}}]},{"role":"tool","tool_call_id":"call_abcdef12","content":"read"}]`, arguments)
}

// base64Of is how an image stands in every dialect.
func base64Of(data []byte) string { return strings.TrimPrefix(pngURL(data), "data:image/png;base64,") }

func TestRangesPutTheImageIntoTheMessagesOnce(t *testing.T) {
	for _, d := range message.Dialects() {
		t.Run(string(d), func(t *testing.T) {
			r := newRig(t)
			r.use(nil) // without a proxy
			data := square(t, 40, 7)
			messages := called(d, r.file("a.png", data))
			for _, body := range []string{
				question(string(d), messages),
				fmt.Sprintf(" {\n\"viewedImages\" : null, \"messages\":\t%s ,\"model\": null,\"dialect\":%q}\n", messages, d),
			} {
				a, _ := r.inject(body)
				after := applied(t, messages, &a)
				if !a.Decision.Inject || a.Decision.Reason != "Ready" || a.Decision.Form != router.InjectionImage || a.Decision.Injected != 1 || a.Append != nil || a.Remove != nil {
					t.Errorf("decision %+v", a.Decision)
				}
				if strings.Count(after, base64Of(data)) != 1 {
					t.Errorf("the image is not there once: %.600s", after)
				}
				again, _ := r.inject(question(string(d), after))
				if again.Decision.Inject || again.Decision.Reason != "AlreadyShown" || len(again.Ranges) != 0 {
					t.Errorf("what is shown is shown again: %+v", again.Decision)
				}
				for path, v := range a.ViewedImages {
					if !strings.HasSuffix(path, "a.png") || !strings.Contains(string(v), `"sha256":"`+hashed(data)) || strings.Contains(string(v), "base64") {
						t.Errorf("viewed %s: %s", path, v)
					}
				}
				if len(a.ViewedImages) != 1 {
					t.Errorf("viewed %v", a.ViewedImages)
				}
			}
		})
	}
}

// What the ranges make is what the proxy would send: one way, two doors.
func TestRangesMakeWhatPrepareMakes(t *testing.T) {
	r := newRig(t)
	r.use(proxied(nil))
	body := viewed("see", r.file("a.png", square(t, 40, 7)), r.file("b.png", square(t, 30, 9)), "missing.png")
	sent, _ := r.prepare(body)
	var request struct{ Messages json.RawMessage }
	must(t, json.Unmarshal([]byte(body), &request))
	a, _ := r.inject(question("openai-chat", string(request.Messages), `"model":"see"`))
	if got := applied(t, string(request.Messages), &a); !strings.Contains(sent, got) || a.Decision.Route != "models@default/see" || a.Decision.Unavailable != 1 || a.Decision.Injected != 2 {
		t.Errorf("decision %+v, messages %.500s", a.Decision, got)
	}
}

func TestD28_MessagesWithNothingToShowStayAsTheyAre(t *testing.T) {
	r := newRig(t)
	for name, c := range map[string]struct {
		messages, dialect, reason string
		edit                      func(*router.Document)
	}{
		"nobody spoke":                {`[]`, "openai-chat", "NoAssistantMessage", nil},
		"a list in which nobody did":  {`[]`, "langchain-messages", "NoAssistantMessage", nil},
		"no tool was called":          {`[{"role":"user","content":"a"},{"role":"assistant","content":"b"}]`, "openai-chat", "NoVisionCalls", nil},
		"a list without calls":        {`[{"type":"ai","content":"b"}]`, "langchain-messages", "NoVisionCalls", nil},
		"a call is open":              {strings.Split(called(message.OpenAIChat, "a.png"), `,{"role":"tool"`)[0] + `,{"role":"user","content":"?"}]`, "openai-chat", "CallsUnanswered", nil},
		"the policy shows none":       {called(message.OpenAIChat, "a.png"), "openai-chat", "InjectionOff", off},
		"the policy shows lists none": {listed("a.png"), "langchain-messages", "InjectionOff", off},
	} {
		t.Run(name, func(t *testing.T) {
			r.use(c.edit)
			a, _ := r.inject(question(c.dialect, c.messages))
			if a.Decision.Inject || a.Decision.Reason != c.reason || len(a.Ranges)+len(a.Remove) != 0 || a.Append != nil || len(a.ViewedImages) != 0 {
				t.Errorf("decision %+v, ranges %v", a.Decision, a.Ranges)
			}
		})
	}
}

func off(d *router.Document) { d.Profiles[0].Injection.Mode = router.InjectionOff }

func TestModelsOfQuestions(t *testing.T) {
	r := newRig(t)
	allow := func(d *router.Document) {
		d.Profiles[0].Allow = []router.AllowList{{From: "team/p", Globs: []string{"*/see"}}}
	}
	path := r.file("a.png", square(t, 40, 7))
	for name, c := range map[string]struct {
		model, route, refused string
		edit                  func(*router.Document)
		status                int
	}{
		"none":                                {"", "", "", nil, 0},
		"none, where there are lists":         {"", "", "", allow, 0},
		"a declared one":                      {"see", "models@default/see", "", nil, 0},
		"a route":                             {"models@default/see-too", "models@default/see-too", "", nil, 0},
		"one that nobody declares":            {"gpt-5.2", "", "", nil, 0},
		"one that the policy does not allow":  {"see-too", "", "ModelNotAllowed", allow, 403},
		"nobody's, where there are lists":     {"gpt-5.2", "", "ModelNotAllowed", allow, 403},
		"one of another dialect's, all right": {"see", "models@default/see", "", nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			r.use(c.edit)
			d := message.OpenAIChat
			if strings.Contains(name, "another dialect") {
				d = message.AnthropicMessages
			}
			messages := called(d, path)
			body := question(string(d), messages, fmt.Sprintf(`"model":%q`, c.model))
			if c.refused != "" {
				if f := r.uninjected(body); f.Reason != c.refused || f.Status() != c.status {
					t.Errorf("refused with %d %s: %v", f.Status(), f.Reason, f)
				}
				return
			}
			if a, _ := r.inject(body); a.Decision.Injected != 1 || a.Decision.Route != c.route {
				t.Errorf("decision %+v", a.Decision)
			}
		})
	}
}

func TestATextOnlyModelsMessagesGetTexts(t *testing.T) {
	r := newRig(t)
	r.use(nil)
	data := square(t, 40, 7)
	path := r.file("a.png", data)
	messages := called(message.OpenAIChat, path)
	a, raw := r.inject(question("openai-chat", messages, `"model":"text"`))
	if after := applied(t, messages, &a); a.Decision.Form != router.InjectionObservation || a.Decision.Observed != 1 || a.Decision.Injected != 0 || strings.Contains(after, base64Of(data)) || !strings.Contains(after, "untrusted") {
		t.Errorf("decision %+v: %.600s", a.Decision, after)
	}
	list, rawList := r.inject(question("langchain-messages", listed(path), `"model":"text"`))
	if list.Decision.Observed != 1 || strings.Contains(string(list.Append), "image_url") || !strings.Contains(string(list.Append), `"type":"text"`) {
		t.Errorf("decision %+v: %s", list.Decision, list.Append)
	}
	if strings.Contains(raw+rawList, base64Of(data)) {
		t.Error("the image is in an answer")
	}
	if v := string(list.ViewedImages[path]); !strings.Contains(v, hashed(data)) {
		t.Errorf("viewed %s", v)
	}
}

func TestImagesOfTheMessagesOwnBecomeTextsForATextOnlyModel(t *testing.T) {
	r := newRig(t)
	r.use(nil)
	data := square(t, 40, 7)
	messages := fmt.Sprintf(`[{"role":"user","content":[{"type":"text","text":"and this?"},{"type":"image_url","image_url":{"url":%q}}]}]`, pngURL(data))
	a, _ := r.inject(question("openai-chat", messages, `"model":"text"`))
	if after := applied(t, messages, &a); a.Decision.Observed != 1 || strings.Contains(after, base64Of(data)) || len(a.Ranges) != 1 {
		t.Errorf("decision %+v: %.500s", a.Decision, after)
	}
}

func TestQuestionsThatCannotBeRead(t *testing.T) {
	r := newRig(t)
	r.use(nil)
	for name, c := range map[string]struct{ body, reason, field string }{
		"nothing":                   {``, "NotJSON", ""},
		"no JSON":                   {`{"dialect":"openai-chat","messages":[}`, "NotJSON", ""},
		"something behind":          {question("openai-chat", `[]`) + `x`, "NotJSON", ""},
		"no object":                 {`[]`, "WrongType", ""},
		"no dialect":                {`{"messages":[]}`, "Missing", "dialect"},
		"no such dialect":           {question("cohere", `[]`), "UnknownDialect", "dialect"},
		"a dialect that is a list":  {`{"dialect":[],"messages":[]}`, "WrongType", "dialect"},
		"no messages":               {`{"dialect":"openai-chat"}`, "Missing", "messages"},
		"messages that are a text":  {question("openai-responses", `"hi"`), "WrongType", "messages"},
		"messages twice":            {question("openai-chat", `[]`, `"messages":[]`), "DuplicateMember", "messages"},
		"a model that is a number":  {question("openai-chat", `[]`, `"model":4`), "WrongType", "model"},
		"a member that is not ours": {question("openai-chat", `[]`, `"viewed_images":{}`), "UnknownMember", "viewed_images"},
		"a message of no kind":      {question("openai-chat", `[{"role":"user","content":[{"type":"text","text":"a"}]},4]`), "WrongType", "messages[1]"},
		"a list's message":          {question("langchain-messages", `[{},4]`), "WrongType", "messages[1]"},
		"viewed images of no kind":  {question("openai-chat", `[]`, `"viewedImages":{"/a":{"sha256":"x"}}`), "ViewedImagesMalformed", "viewedImages"},
		"an image told by facts":    {question("openai-chat", `[{"role":"user","content":[{"type":"image_url","image_url":{"url":{"sha256":"`+hashed(nil)+`","bytes":9,"mediaType":"image/png","head":"iVBORw0KGgo="}}}]}]`), "FactsNotData", "messages[0].content[0]"},
	} {
		f := r.uninjected(c.body)
		if field, _ := f.Details["field"].(string); f.Kind != fault.InvalidToolInput || f.Reason != c.reason || field != c.field {
			t.Errorf("%s: %s %s at %q: %v", name, f.Kind, f.Reason, field, f)
		}
	}
	if f := r.uninjected(question("openai-chat", `["a"]`)); f.Details["offset"] != 1 {
		t.Errorf("the offset is not of the messages: %v", f.Details)
	}
}

func TestBodiesOfQuestionsAreBoundedAndMayBeCut(t *testing.T) {
	r := newRig(t)
	r.use(nil)
	body := question("openai-chat", called(message.OpenAIChat, r.file("a.png", square(t, 40, 7))))
	i, err := r.engine.Inject(t.Context(), strings.NewReader(body), -1)
	must(t, err)
	if i.Decision.Injected != 1 {
		t.Errorf("of a length that is not told: %+v", i.Decision)
	}
	i.Release()
	_, err = r.engine.Inject(t.Context(), strings.NewReader(body[:9]), int64(len(body)))
	if f := fault.As(err); f.Reason != "BodyUnreadable" {
		t.Errorf("a cut body: %v", err)
	}
	fresh := engine.New(engine.Options{Profile: "policy/p"})
	defer fresh.Close()
	if _, err := fresh.Inject(t.Context(), strings.NewReader(body), -1); fault.As(err).Kind != fault.RouterUnavailable {
		t.Errorf("without a router: %v", err)
	}
}

func TestD34_QuestionsAtTheSameTimeGetWhatTheyGetOneAfterTheOther(t *testing.T) {
	r := newRig(t)
	r.use(nil)
	path := r.file("a.png", square(t, 40, 7))
	var bodies, one []string
	for _, d := range message.Dialects() {
		bodies = append(bodies, question(string(d), called(d, path)))
	}
	bodies = append(bodies, question("langchain-messages", listed(path)))
	for _, body := range bodies {
		_, raw := r.inject(body)
		one = append(one, raw)
	}
	again := r.again()
	again.use(nil)
	got := make([]string, len(bodies))
	done := make(chan int)
	for i, body := range bodies {
		go func() {
			a, err := again.engine.Inject(context.Background(), strings.NewReader(body), -1)
			if err == nil {
				raw, _ := io.ReadAll(a.Reader())
				got[i] = string(raw)
				a.Release()
			}
			done <- i
		}()
	}
	for range bodies {
		<-done
	}
	for i := range one {
		// A list's mark is by the key of its process: as long, and another.
		if got[i] != one[i] && (i < len(one)-1 || len(got[i]) != len(one[i])) {
			t.Errorf("%.200s\nand\n%.200s", got[i], one[i])
		}
	}
}

func TestMarkdownImagesOfMessages(t *testing.T) {
	r := newRig(t)
	data := square(t, 40, 7)
	r.file("a.png", data)
	messages := `[{"role":"user","content":"see ![a square](a.png), ![far](https://example.com/b.png) and ![root](workspace://other/c.png)"}]`
	for name, c := range map[string]struct {
		value, reason string
		images        int
	}{
		"H54: attached beside its text": {router.MarkdownAttach, "Ready", 1},
		"H55: off, it stays":            {"Off", "NoAssistantMessage", 0},
	} {
		r.use(func(d *router.Document) { d.Profiles[0].Injection.MarkdownImages = c.value })
		a, _ := r.inject(question("openai-chat", messages))
		after := applied(t, messages, &a)
		if a.Decision.Reason != c.reason || strings.Count(after, base64Of(data)) != c.images || !strings.Contains(after, `![a square](a.png), ![far]`) {
			t.Errorf("%s: %+v, %.300s", name, a.Decision, after)
		}
		if c.images > 0 && (a.Decision.Skipped["RemoteImage"] != 1 || a.Decision.Skipped["WorkspaceUnknown"] != 1) {
			t.Errorf("%s: skipped %v", name, a.Decision.Skipped)
		}
	}
}

func TestMarkdownImagesThatCannotBeShownAreToldInTheDecisionAlone(t *testing.T) {
	r := newRig(t)
	r.use(func(d *router.Document) { d.Profiles[0].Injection.MarkdownImages = router.MarkdownAttach })
	for path, why := range map[string]string{"missing.png": "NotFound", "/etc/hostname": "OutsideWorkspace"} {
		a, _ := r.inject(question("anthropic-messages", fmt.Sprintf(`[{"role":"user","content":"see ![x](%s)"}]`, path)))
		if a.Decision.Inject || a.Decision.Reason != "ImagesUnavailable" || len(a.Ranges) != 0 || a.Decision.Unavailable != 1 || a.Decision.Sights[0].Reason != why {
			t.Errorf("%s: %+v", path, a.Decision)
		}
	}
}
