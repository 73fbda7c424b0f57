// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"fmt"
	"strings"

	"github.com/visionoperator/vision-operator/runtime/router"
)

// maxProblems bounds how many problems one message names, and maxMessage its
// bytes: a condition's message is for people to read.
const (
	maxProblems = 8
	maxMessage  = 2048
)

// joinProblems makes one message of the problems in their order.
func joinProblems(problems []string) string {
	rest := 0
	if len(problems) > maxProblems {
		problems, rest = problems[:maxProblems], len(problems)-maxProblems
	}
	message := strings.ToValidUTF8(strings.Join(problems, "; "), "?")
	if len(message) > maxMessage {
		message = cut(message, maxMessage)
	}
	if rest > 0 {
		message += fmt.Sprintf("; and %d more", rest)
	}
	return message
}

// documentProblems holds a document of one object against the document's own
// rules. The object is the document's part named at, and the problems are told
// in the terms of its spec.
func documentProblems(at string, doc *router.Document) []string {
	var problems []string
	for _, p := range router.Problems(doc) {
		field := p.Field
		if inSpec, ok := strings.CutPrefix(field, at+"."); ok {
			field = "spec." + inSpec
		}
		problems = append(problems, (&router.FieldError{Field: field, Problem: p.Problem}).Error())
	}
	return problems
}

// problem is one thing wrong with a policy's references.
type problem struct{ reason, message string }

// refsVerdict is the verdict on a policy's references: the first reason, and
// every message, the remarks last; or the one given when there is no problem.
func refsVerdict(problems []problem, remarks []string, ok Verdict) Verdict {
	if len(problems) == 0 {
		return ok
	}
	messages := make([]string, 0, len(problems)+len(remarks))
	for _, p := range problems {
		messages = append(messages, p.message)
	}
	return Verdict{Reason: problems[0].reason, Message: joinProblems(append(messages, remarks...))}
}

// withNote adds a note to a message, whose end gives way where both are too long.
func withNote(message, note string) string {
	if most := maxMessage - len(note); len(message) > most {
		message = cut(message, most)
	}
	return message + note
}

// cut is the beginning of a text, and says that it is.
func cut(text string, most int) string { return strings.ToValidUTF8(text[:most], "") + "…" }
