// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package injection_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/visionoperator/vision-operator/runtime/injection"
	"github.com/visionoperator/vision-operator/runtime/message"
)

func TestAQuestionIsWrappedWhereItStands(t *testing.T) {
	for _, d := range message.Dialects() {
		for _, question := range []string{
			`{"messages":[{"a":"é\u00e9"}],"dialect":"%s"}`,
			"\n{ \"dialect\" : \"%s\", \"model\":\"m\",\"messages\" :\t[{\"a\":\"é\\u00e9\"}] }\n",
			`{"dialect":"%s","messa\u0067es":[{"a":"é\u00e9"}]}`,
		} {
			data := fmt.Appendf(nil, question, d)
			a, err := injection.ReadAsk(data)
			if err != nil {
				t.Fatal(err)
			}
			before := string(data[a.Messages.Start:a.Messages.End])
			body := a.Wrap(data)
			var request map[string]json.RawMessage
			if err := json.Unmarshal(body, &request); err != nil || len(request) != 1 {
				t.Fatalf("%s: %q, %v", d, body, err)
			}
			for name, messages := range request {
				if string(messages) != before || before != `[{"a":"é\u00e9"}]` || string(body[injection.Wrapped:len(body)-1]) != before || !strings.Contains("messages input contents", name) {
					t.Errorf("%s: %q holds %q", d, body, messages)
				}
			}
			if &body[injection.Wrapped] != &data[a.Messages.Start] {
				t.Error("the messages were copied")
			}
		}
	}
	a, err := injection.ReadAsk([]byte(`{"dialect":"langchain-messages","messages":[]}`))
	if err != nil || a.Wrap(nil) != nil || a.Viewed != nil || a.Cleared {
		t.Errorf("a list: %+v, %v", a, err)
	}
}

func TestAnErrorOfAQuestionHoldsNothingOfIt(t *testing.T) {
	for _, question := range []string{
		`{"dialect":"c2VjcmV0","messages":[]}`, `{"dialect":"openai-chat","messages":"c2VjcmV0"}`, `{"dialect":"openai-chat","messages":["c2VjcmV0"`,
		`{"dialect":"openai-chat","messages":[],"viewedImages":{"/a":{"base64":"c2VjcmV0","size":-1}}}`,
	} {
		_, err := injection.ReadAsk([]byte(question))
		if bad, ok := errors.AsType[*injection.AskError](err); !ok || strings.Contains(err.Error(), "c2VjcmV0") || bad.Reason == "" {
			t.Errorf("%s: %v", question, err)
		}
	}
	many := `{"dialect":"openai-chat","messages":[],"viewedImages":[` + strings.Repeat("{},", injection.MostUpdates) + `{}]}`
	if _, err := injection.ReadAsk([]byte(many)); err == nil {
		t.Error("more updates than are bounded")
	}
}

func FuzzReadAsk(f *testing.F) {
	for _, seed := range []string{
		`{"dialect":"openai-responses","messages":[{"a":[1,"\"]"]}],"model":null,"viewedImages":[null,{"/a":{"size":1}},{"$clear":true}]}`,
		`{"messages":[],"dialect":"gemini-contents"}`, ` {"messages" : [ ] , "dialect":"anthropic-messages"} `, `{"dialect":"langchain-messages","messages":[{}]}`,
		`{"dialect":"openai-chat","messages":[]}x`, `[]`, `{"a":1}`, ``, `"`, `{"messages":`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		a, err := injection.ReadAsk(data)
		if err != nil {
			if _, ok := errors.AsType[*injection.AskError](err); !ok {
				t.Fatalf("%T", err)
			}
			return
		}
		messages := bytes.Clone(data[a.Messages.Start:a.Messages.End])
		if !json.Valid(messages) || messages[0] != '[' {
			t.Fatalf("messages are %q", messages)
		}
		if body := a.Wrap(data); body != nil && (!json.Valid(body) || !bytes.Equal(body[injection.Wrapped:len(body)-1], messages)) {
			t.Fatalf("wrapped as %q", body)
		}
	})
}
