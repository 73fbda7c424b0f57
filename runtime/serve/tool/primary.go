// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package tool

import (
	"errors"
	"strconv"
	"strings"
	"unicode"

	"github.com/visionoperator/vision-operator/runtime/fault"
	"github.com/visionoperator/vision-operator/runtime/router"
)

// Where a caller says which model is its own: in the header of an HTTP request,
// or in the _meta of an MCP call.
const (
	PrimaryModelHeader = "X-Vision-Primary-Model"
	PrimaryModelMeta   = "visionoperator.dev/primary-model"
)

// MaxPrimaryModel is the longest route of a caller's own model, in bytes: two
// labels of 63 and a model of 253, as the grammar of routes allows, with the
// two signs between them.
const MaxPrimaryModel = 63 + 63 + 253 + 2

// PrimaryModel reads a caller's own model out of where, which is named when it
// is refused. A blank value says nothing. Whether the route exists is not
// judged here: the caller's model need not be one of the router's.
func PrimaryModel(where, value string) (string, error) {
	value = strings.TrimSpace(value)
	if value == "" {
		return "", nil
	}
	if len(value) > MaxPrimaryModel {
		return "", badPrimary(where, "has "+strconv.Itoa(len(value))+" bytes; the longest route has "+strconv.Itoa(MaxPrimaryModel))
	}
	if strings.ContainsFunc(value, func(r rune) bool { return r == unicode.ReplacementChar || !unicode.IsPrint(r) }) {
		return "", badPrimary(where, "has characters that cannot be printed")
	}
	if _, err := router.ParseRoute(value); err != nil {
		problem := "is no route"
		if bad, ok := errors.AsType[*router.RouteError](err); ok {
			problem = bad.Problem
		}
		return "", badPrimary(where, problem)
	}
	return value, nil
}

// BadPrimaryModel refuses a value of where that is no text at all.
func BadPrimaryModel(where, kind string) error {
	return badPrimary(where, "is a JSON "+kind+"; want a string").With("type", kind)
}

func badPrimary(where, problem string) *fault.Fault {
	return fault.New(fault.InvalidToolInput, "PrimaryModelMalformed", "%s %s", where, problem).With("field", where).
		Hint("Name the caller's own model in %s as provider@endpoint/model or provider/model, or leave it out.", where)
}
