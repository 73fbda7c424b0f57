// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/visionoperator/vision-operator/runtime/engine"
	"github.com/visionoperator/vision-operator/runtime/fault"
	"github.com/visionoperator/vision-operator/runtime/message"
)

// A path that is viewed twice with different bytes keeps both pictures, each beside
// its call, though the state of viewed images knows the newer one alone.
func TestWhatWasShownStaysThoughTheStateKnowsNewerBytes(t *testing.T) {
	r := newRig(t)
	r.use(nil)
	older, newer := square(t, 40, 7), square(t, 40, 8)
	path := r.file("a.png", older)
	first := called(message.OpenAIChat, path)
	a, _ := r.inject(question("openai-chat", first))
	shown := applied(t, first, &a)
	r.file("a.png", newer)
	quoted, _ := json.Marshal(fmt.Sprintf(`{"path":%q}`, path))
	second := strings.TrimSuffix(first, "]") + fmt.Sprintf(`,{"role":"assistant","tool_calls":[{"id":"call_zzzzzz99","type":"function","function":{"name":"view_image","arguments":%s}}]},{"role":"tool","tool_call_id":"call_zzzzzz99","content":"read"}]`, quoted)
	b, _ := r.inject(question("openai-chat", second, fmt.Sprintf(`"viewedImages":{%q:{"sha256":%q}}`, path, hashed(newer))))
	after := applied(t, second, &b)
	if !strings.HasPrefix(after, strings.TrimSuffix(shown, "]")) {
		t.Errorf("what was shown has changed: %.400s", after)
	}
	if strings.Count(after, base64Of(older)) != 1 || strings.Count(after, base64Of(newer)) != 1 || !strings.Contains(string(b.ViewedImages[path]), hashed(newer)) {
		t.Errorf("decision %+v, viewed %v", b.Decision, b.ViewedImages)
	}
	if log := r.log.String(); strings.Count(log, "images shown") != 2 || !strings.Contains(log, "call_zzzzzz99") || !strings.Contains(log, `{Offset:`) {
		t.Errorf("the log does not tell of it: %s", log)
	}
}

func TestQuestionsThatEndGiveTheirRoomBack(t *testing.T) {
	r := newRig(t)
	r.startWith(func(o *engine.Options) { o.MaxHeldBytes = 64 << 10 })
	r.use(nil)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	long := question("openai-chat", "["+strings.Repeat(" ", 40<<10)+"]")
	for i, body := range []string{long + "x", long, strings.Replace(long, "openai-chat", "nobody's", 1), long} {
		answer, err := r.engine.Inject(ctx, strings.NewReader(body), []int64{int64(len(body)), -1}[i/2]) // one of an untold length needs all
		if (err != nil) != (i%2 == 0) {
			t.Fatalf("%d: %v", i, err)
		}
		if err == nil {
			answer.Release()
		}
	}
	if f := r.uninjected(question("openai-chat", "["+strings.Repeat(" ", 70<<10)+"]")); f.Reason != "BodyTooLarge" || f.Kind != fault.BudgetExceeded {
		t.Errorf("more than there is: %v", f)
	}
}

func TestWithoutAModelThePolicyAloneJudges(t *testing.T) {
	r := newRig(t)
	r.use(nil)
	// Over what the vendor takes, and not over the policy's 20 MiB.
	large := append(pngHeader(1024, 768), make([]byte, 12<<20)...)
	messages := called(message.AnthropicMessages, r.file("a.png", large))
	for model, injected := range map[string]int{"": 1, "claude-opus-4-7": 0} {
		a, _ := r.inject(question("anthropic-messages", messages, fmt.Sprintf(`"model":%q`, model)))
		if a.Decision.Injected != injected || a.Decision.Degraded != 1-injected {
			t.Errorf("%q: %+v", model, a.Decision)
		}
	}
}
