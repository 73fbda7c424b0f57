// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package injection_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/visionoperator/vision-operator/runtime/injection"
	"github.com/visionoperator/vision-operator/runtime/message"
	"github.com/visionoperator/vision-operator/runtime/router"
)

// Whatever a client sends: with the edits it is JSON and a request still, nothing of
// it is lost, and what was put in is found.
func FuzzEdits(f *testing.F) {
	places := []string{router.ToolImagesInToolResult, router.ToolImagesUserMessage, router.ToolImagesAssistantThenUser}
	files, err := filepath.Glob("testdata/*/*/body.json")
	if err != nil {
		f.Fatal(err)
	}
	for i, file := range files {
		body, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		d := message.Dialect(filepath.Base(filepath.Dir(filepath.Dir(file))))
		f.Add(uint8(slices.Index(message.Dialects(), d)), uint8(i), body)
	}
	rules := injection.RulesOf(router.Injection{MarkdownImages: router.MarkdownAttach, Tools: []string{"*"}})
	f.Fuzz(func(t *testing.T, dialect, place uint8, body []byte) {
		d := message.Dialects()[int(dialect)%4]
		r, err := message.Scan(d, body)
		if err != nil {
			return
		}
		dropped, _ := spliced(t, body, injection.DropSignatures(r, body))
		p := injection.Find(r, body, rules, places[int(place)%3], nil)
		shown := show(p)
		s, edited := spliced(t, body, p.Edits(r, body, shown))
		if !json.Valid(edited) || !bytes.Equal(restored(body, edited, s.Ranges()), body) {
			t.Fatalf("%s", edited)
		}
		after, err := message.Scan(d, edited)
		if err != nil {
			t.Fatalf("%v in %s", err, edited)
		}
		pictures := 0
		for i, sight := range p.Sights {
			if shown[i].Picture != nil && (sight.State == injection.Wanted || sight.State == injection.NoPath) && (sight.Result < 0 || r.Results[sight.Result].Takes || place%3 > 0) {
				pictures++
			}
		}
		if got := len(after.Images) - len(r.Images); got < pictures {
			t.Fatalf("%d images of %d in %s", got, pictures, edited)
		}
		if len(r.Signatures) == 0 && dropped.Changed() {
			t.Fatal("there is nothing to drop")
		}
	})
}
