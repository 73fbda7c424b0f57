// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"encoding/json"
	"net/http"
	"strconv"
	"time"
)

// The type words of OpenAI's error bodies that this server uses.
const (
	typeInvalidRequest = "invalid_request_error"
	typeServer         = "server_error"
)

// Error is a refusal as OpenAI writes it. It never repeats texts, images or
// keys of the request.
type Error struct {
	Status     int           `json:"-"` // the HTTP status
	RetryAfter time.Duration `json:"-"` // sent when positive, in whole seconds
	Message    string        `json:"message"`
	Type       string        `json:"type"`
	// Param is the path of the member at fault, such as
	// "messages[1].content[0].image_url"; null when there is none.
	Param *string `json:"param"`
	// Code is a stable word for the reason; null when there is none.
	Code *string `json:"code"`
}

func (e *Error) Error() string { return e.Message }

// invalid is a 400. param and code may be empty.
func invalid(param, code, message string) *Error {
	return refusal(http.StatusBadRequest, typeInvalidRequest, param, code, message)
}

func refusal(status int, kind, param, code, message string) *Error {
	e := &Error{Status: status, Message: message, Type: kind}
	if param != "" {
		e.Param = &param
	}
	if code != "" {
		e.Code = &code
	}
	return e
}

// write sends the refusal.
func (e *Error) write(w http.ResponseWriter) {
	if e.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int((e.RetryAfter+time.Second-1)/time.Second)))
	}
	writeJSON(w, e.Status, map[string]*Error{"error": e})
}

func writeJSON(w http.ResponseWriter, status int, body any) {
	data, err := json.Marshal(body)
	if err != nil { // not reachable with this package's types
		http.Error(w, "writing answer failed", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = w.Write(append(data, '\n'))
}
