// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/visionoperator/vision-operator/runtime/engine"
	"github.com/visionoperator/vision-operator/runtime/injection"
	"github.com/visionoperator/vision-operator/runtime/router"
)

// listed is a framework's list in which view_image was called for each path.
func listed(paths ...string) string {
	var calls, results []string
	for i, path := range paths {
		quoted, _ := json.Marshal(path)
		calls = append(calls, fmt.Sprintf(`{"name":"view_image","args":{"path":%s},"id":"call_%d"}`, quoted, i))
		results = append(results, fmt.Sprintf(`,{"type":"tool","content":"read","tool_call_id":"call_%d"}`, i))
	}
	return fmt.Sprintf(`[{"type":"human","content":"what?"},{"type":"ai","content":"","tool_calls":[%s]}%s]`, strings.Join(calls, ","), strings.Join(results, ""))
}

// appended is the message of an answer.
type appended struct {
	Type, ID string
	Content  []struct {
		Type, Text string
		ImageURL   struct{ URL string } `json:"image_url"`
	}
	Kwargs map[string]json.RawMessage `json:"additional_kwargs"`
}

func (m *appended) kinds() string {
	var kinds []string
	for _, part := range m.Content {
		kinds = append(kinds, part.Type)
	}
	return strings.Join(kinds, " ")
}

func (a *injectedAnswer) message(t *testing.T) *appended {
	t.Helper()
	if !a.Decision.Inject || a.Append == nil || len(a.Ranges) != 0 {
		t.Fatalf("nothing is appended: %+v", a.Decision)
	}
	m := &appended{}
	must(t, json.Unmarshal(a.Append, m))
	return m
}

// with is a list with one more message.
func with(list string, message []byte) string {
	return strings.TrimSuffix(list, "]") + "," + string(message) + "]"
}

func TestAListGetsOneHiddenMarkedMessage(t *testing.T) {
	r := newRig(t)
	r.use(nil)
	first, second := square(t, 40, 7), square(t, 30, 9)
	list := listed(r.file("a.png", first), r.file("b.png", second), "missing.png")
	a, _ := r.inject(question("langchain-messages", list))
	m := a.message(t)
	if m.Type != "human" || m.kinds() != "text text image_url text image_url text" || m.Content[2].ImageURL.URL != pngURL(first) || m.Content[4].ImageURL.URL != pngURL(second) {
		t.Errorf("the message is %s, of %s", m.kinds(), m.Type)
	}
	if !strings.HasPrefix(m.ID, injection.IDPrefix) || string(m.Kwargs[injection.HiddenMember]) != "true" || m.Kwargs[injection.MarkerMember] == nil || len(a.Remove) != 0 {
		t.Errorf("id %s, marked %s, remove %v", m.ID, m.Kwargs, a.Remove)
	}
	if a.Decision.Injected != 2 || a.Decision.Unavailable != 1 || len(a.Decision.Sights) != 3 || len(a.ViewedImages) != 2 {
		t.Errorf("decision %+v, viewed %v", a.Decision, a.ViewedImages)
	}
	if again, _ := r.inject(question("langchain-messages", with(list, a.Append))); again.Decision.Inject || again.Decision.Reason != "AlreadyInjected" {
		t.Errorf("again: %+v", again.Decision)
	}
}

func TestAMarkIsKnownByThePodsKey(t *testing.T) {
	r := newRig(t)
	list := listed(r.file("a.png", square(t, 40, 7)), "missing.png")
	as := func(key string) *rig {
		next := *r
		next.startWith(func(o *engine.Options) { o.PodKey = []byte(strings.Repeat(key, 32)) })
		next.use(nil)
		return &next
	}
	a, _ := as("a").inject(question("langchain-messages", list))
	kept := question("langchain-messages", with(list, a.Append))
	if got, _ := as("a").inject(kept); got.Decision.Inject || got.Decision.Reason != "AlreadyInjected" {
		t.Errorf("after a restart: %+v", got.Decision)
	}
	got, _ := as("b").inject(kept)
	if m := got.message(t); m.kinds() != "text" || len(got.Remove) != 0 { // the image stands there, whoever put it
		t.Errorf("by another key: %s, remove %v", m.kinds(), got.Remove)
	}
}

func TestAnImageThatStandsInTheListIsNeitherShownNorJudgedAgain(t *testing.T) {
	r := newRig(t)
	r.use(nil)
	data := square(t, 40, 7)
	list := with(listed(r.file("a.png", data)), fmt.Appendf(nil, `{"type":"human","content":[{"type":"image_url","image_url":{"url":%q}}]}`, pngURL(data)))
	a, _ := r.inject(question("langchain-messages", list))
	if a.Decision.Inject || a.Decision.Reason != "AlreadyShown" || a.Decision.Injected != 0 || a.Decision.Sights[0].Outcome != engine.SightShown {
		t.Errorf("%+v", a.Decision)
	}
}

func TestImagesOfAListAreHeldAgainstThePolicy(t *testing.T) {
	r := newRig(t)
	r.use(func(d *router.Document) { d.Profiles[0].Limits.Request.MaxDistinctImages = 1 })
	a, _ := r.inject(question("langchain-messages", listed(r.file("a.png", square(t, 40, 7)), r.file("b.png", square(t, 30, 9)))))
	if m := a.message(t); strings.Count(m.kinds(), "image_url") != 1 || a.Decision.Injected != 1 || a.Decision.Degraded != 1 {
		t.Errorf("decision %+v, message %s", a.Decision, m.kinds())
	}
}

// viewedState asks with a state and gives the new one.
func (r *rig) viewedState(path, state string) (a injectedAnswer, digests map[string]string) {
	r.t.Helper()
	a, raw := r.inject(question("langchain-messages", listed(path), `"viewedImages":`+state))
	if strings.Contains(raw, `"base64"`) {
		r.t.Error("there is image data in the state")
	}
	digests = map[string]string{}
	for at, v := range a.ViewedImages {
		var image struct {
			SHA256 string `json:"sha256"`
		}
		if at != injection.ClearMember {
			must(r.t, json.Unmarshal(v, &image))
			digests[at] = image.SHA256
		}
	}
	return a, digests
}

func TestViewedImagesOfALoop(t *testing.T) {
	r := newRig(t)
	r.use(nil)
	data := square(t, 40, 7)
	path := r.file("a.png", data)
	x, y := strings.Repeat("ab", 32), strings.Repeat("cd", 32)
	entry := func(name, digest string) string { return fmt.Sprintf(`{%q:{"sha256":%q}}`, name, digest) }
	for name, c := range map[string]struct {
		state   string
		want    map[string]string
		cleared bool
	}{
		"D46: two entries merge":                      {"[" + entry("/x", x) + "," + entry("/y", y) + "]", map[string]string{"/x": x, "/y": y}, false},
		"D46: the newer of one path":                  {"[" + entry("/x", x) + "," + entry("/x", y) + "]", map[string]string{"/x": y}, false},
		"D47: an accidental {} keeps":                 {"[" + entry("/x", x) + ",{}]", map[string]string{"/x": x}, false},
		"D47: null keeps":                             {"[" + entry("/x", x) + ",null]", map[string]string{"/x": x}, false},
		"D47: an explicit clear empties":              {"[" + entry("/x", x) + `,{"$clear":true},` + entry("/y", y) + "]", map[string]string{"/y": y}, true},
		"D48b: two views of one step are both kept":   {"[{}," + entry("/x", x) + "," + entry("/y", y) + "]", map[string]string{"/x": x, "/y": y}, false},
		"a state alone":                               {entry("/x", x), map[string]string{"/x": x}, false},
		"an empty one, to which the view is new":      {"{}", map[string]string{}, false},
		"none":                                        {"null", map[string]string{}, false},
		"a state that says that it was emptied, kept": {`{"$clear":true,"/x":{"sha256":"` + x + `"}}`, map[string]string{"/x": x}, true},
	} {
		t.Run(name, func(t *testing.T) {
			c.want[path] = hashed(data)
			a, got := r.viewedState(path, c.state)
			if fmt.Sprint(got) != fmt.Sprint(c.want) || a.Decision.Injected != 1 || (a.ViewedImages[injection.ClearMember] != nil) != c.cleared {
				t.Errorf("the state is %v; want %v", a.ViewedImages, c.want)
			}
		})
	}
}

func TestD48_TheStateThatIsAnsweredIsReadAsTheSame(t *testing.T) {
	r := newRig(t)
	r.use(nil)
	path := r.file("a.png", square(t, 40, 7))
	a, first := r.viewedState(path, `{"/x":{"mime_type":"image/gif","size":9,"width":3,"height":4,"call_id":"c","base64":"cGljdHVyZQ=="}}`)
	state, err := json.Marshal(a.ViewedImages)
	must(t, err)
	if b, second := r.viewedState(path, string(state)); fmt.Sprint(first) != fmt.Sprint(second) || fmt.Sprintf("%s", a.ViewedImages) != fmt.Sprintf("%s", b.ViewedImages) {
		t.Errorf("%s\nand then\n%s", a.ViewedImages, b.ViewedImages)
	}
}

func TestAViewedFileThatHasOtherBytesNowIsToldAsChanged(t *testing.T) {
	r := newRig(t)
	r.use(nil)
	path := r.file("a.png", square(t, 40, 7))
	_, digests := r.viewedState(path, "{}")
	r.file("a.png", square(t, 40, 8))
	state := fmt.Sprintf(`{%q:{"sha256":%q}}`, path, digests[path])
	fresh := r.again() // without what was shown before
	fresh.use(nil)
	a, now := fresh.viewedState(path, state)
	m := a.message(t)
	sized, _ := fresh.viewedState(path, fmt.Sprintf(`{%q:{"size":1}}`, path))
	if sized.message(t).kinds() != "text" || sized.Decision.Injected != 0 || sized.Decision.Sights[0].Reason != "Changed" {
		t.Errorf("of another size: %+v", sized.Decision)
	}
	if m.kinds() != "text" || !strings.Contains(strings.ToLower(m.Content[0].Text), "changed") || a.Decision.Unavailable != 1 || now[path] != digests[path] {
		t.Errorf("decision %+v, message %+v", a.Decision, m.Content)
	}
	for _, d := range []string{"openai-chat", "anthropic-messages"} {
		messages := map[string]string{"openai-chat": called("openai-chat", path), "anthropic-messages": called("anthropic-messages", path)}[d]
		b, _ := fresh.inject(question(d, messages, `"viewedImages":`+state))
		if after := applied(t, messages, &b); b.Decision.Unavailable != 1 || b.Decision.Sights[0].Reason != "Changed" || !strings.Contains(after, "Changed") {
			t.Errorf("%s: %+v, %.500s", d, b.Decision, after)
		}
	}
}

func TestBytesThatAnOlderStateHoldsAreShownWhenTheFileIsGone(t *testing.T) {
	r := newRig(t)
	r.use(nil)
	data := square(t, 40, 7)
	path := r.file("a.png", data)
	must(t, os.Remove(path))
	good := base64.StdEncoding.EncodeToString(data)
	for name, c := range map[string]struct{ base64, want string }{
		"D14: none is one text":       {"", "text"},
		"D19: white space":            {good[:8] + " " + good[8:], "text"},
		"D19: without its padding":    {good[:len(good)-1], "text"},
		"D19: the alphabet of URLs":   {"_-_-", "text"},
		"D19: no image":               {"cGljdHVyZQ==", "text"},
		"D35: bytes without the disk": {good, "text text image_url"},
	} {
		a, _ := r.viewedState(path, fmt.Sprintf(`{%q:{"base64":%q}}`, path, c.base64))
		if got := a.message(t).kinds(); got != c.want {
			t.Errorf("%s: %s", name, got)
		}
	}
	other := fmt.Sprintf(`{%q:{"base64":%q,"sha256":%q}}`, path+"2", good, strings.Repeat("ab", 32))
	if a, _ := r.viewedState(path+"2", other); a.Decision.Injected != 0 {
		t.Errorf("bytes that are not those of the digest: %+v", a.Decision)
	}
}

func TestD35_AnUploadedImageIsShownByItsReference(t *testing.T) {
	r := newRig(t)
	r.use(nil)
	data := square(t, 40, 7)
	kept, err := r.engine.Upload(t.Context(), strings.NewReader(string(data)), int64(len(data)))
	must(t, err)
	uri := "vision://" + kept.Reference.ID
	a, _ := r.inject(question("langchain-messages", listed(uri)))
	if m := a.message(t); m.kinds() != "text text image_url" || m.Content[2].ImageURL.URL != pngURL(data) {
		t.Errorf("%+v", a.Decision)
	}
	messages := called("openai-responses", uri)
	b, _ := r.inject(question("openai-responses", messages))
	if after := applied(t, messages, &b); strings.Count(after, base64Of(data)) != 1 {
		t.Errorf("%+v", b.Decision)
	}
}
