// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Command agent is what the end-to-end tests put into pods: it does what an agent
// does, with nothing but the environment that the operator gave to its container.
//
//	agent copy FROM TO          copies a file, as an init container would
//	agent look PATH PROMPT      asks ViewImage once, prints the answer and ends
//	agent serve ADDRESS         serves what stands below over HTTP
//	agent upstream ADDRESS      stands in for a model that tells which key it was sent
//
//	GET /view?path=P&prompt=Q   asks ViewImage, and answers as the runtime did
//	GET /chat?path=P            is a turn of a chat in which a tool of the agent's own
//	                            read the file P, sent to $OPENAI_BASE_URL
//	GET /until?path=P&status=N  asks ViewImage again and again until the runtime
//	                            answers with status N, and answers when that was
//	GET /environment            the names of its variables, one in a line
package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "agent:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	switch {
	case len(args) == 3 && args[0] == "copy":
		return copyFile(args[1], args[2])
	case len(args) == 3 && args[0] == "look":
		status, answer, err := view(context.Background(), args[1], args[2])
		fmt.Printf("%s\n", answer)
		if err == nil && status != http.StatusOK {
			err = fmt.Errorf("looking at %s: HTTP %d", args[1], status)
		}
		return err
	case len(args) == 2 && args[0] == "serve":
		server := &http.Server{Addr: args[1], Handler: routes(), ReadHeaderTimeout: time.Minute}
		return server.ListenAndServe()
	case len(args) == 2 && args[0] == "upstream":
		server := &http.Server{Addr: args[1], Handler: upstream(), ReadHeaderTimeout: time.Minute}
		return server.ListenAndServe()
	}
	return errors.New("usage: agent copy FROM TO | look PATH PROMPT | serve ADDRESS | upstream ADDRESS")
}

func copyFile(from, to string) error {
	data, err := os.ReadFile(from)
	if err != nil {
		return fmt.Errorf("copying a file: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return fmt.Errorf("copying a file: %w", err)
	}
	// For nobody but the agent's user, as umask 077 would have it.
	if err := os.WriteFile(to, data, 0o600); err != nil {
		return fmt.Errorf("copying a file: %w", err)
	}
	return nil
}

func routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /view", func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		status, answer, err := view(r.Context(), q.Get("path"), q.Get("prompt"))
		reply(w, status, answer, err)
	})
	mux.HandleFunc("GET /chat", func(w http.ResponseWriter, r *http.Request) {
		status, answer, err := chat(r.Context(), r.URL.Query().Get("path"))
		reply(w, status, answer, err)
	})
	mux.HandleFunc("GET /until", func(w http.ResponseWriter, r *http.Request) {
		at, err := until(r.Context(), r.URL.Query().Get("path"), r.URL.Query().Get("status"))
		reply(w, http.StatusOK, []byte(at.Format(time.RFC3339Nano)), err)
	})
	mux.HandleFunc("GET /environment", func(w http.ResponseWriter, _ *http.Request) {
		for _, v := range os.Environ() {
			name, _, _ := strings.Cut(v, "=")
			fmt.Fprintln(w, name)
		}
	})
	return mux
}

func reply(w http.ResponseWriter, status int, answer []byte, err error) {
	if err != nil {
		status, answer = http.StatusBadGateway, []byte(err.Error())
	}
	w.WriteHeader(status)
	_, _ = w.Write(answer)
}

// view asks the runtime beside this container to look at a file.
func view(ctx context.Context, path, prompt string) (status int, answer []byte, err error) {
	return post(ctx, os.Getenv("VISION_RUNTIME_URL")+"/v1/view-image", map[string]string{"path": path, "prompt": prompt})
}

// chat asks the model, by the base URL that OpenAI's SDKs read, what a file says
// that a tool of the agent's own has just read. No image is in the request.
func chat(ctx context.Context, path string) (status int, answer []byte, err error) {
	arguments, err := json.Marshal(map[string]string{"path": path})
	if err != nil {
		return 0, nil, err
	}
	const call = "call_e2e_1"
	return post(ctx, os.Getenv("OPENAI_BASE_URL")+"/chat/completions", map[string]any{"model": "tesseract", "messages": []any{
		map[string]any{"role": "user", "content": "What does the picture say?"},
		map[string]any{"role": "assistant", "content": "", "tool_calls": []any{
			map[string]any{"id": call, "type": "function", "function": map[string]any{"name": "view_image", "arguments": string(arguments)}},
		}},
		map[string]any{"role": "tool", "tool_call_id": call, "content": "Image read."},
	}})
}

func post(ctx context.Context, url string, body any) (status int, answer []byte, err error) {
	data, err := json.Marshal(body)
	if err != nil {
		return 0, nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(data))
	if err != nil {
		return 0, nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+cmp.Or(os.Getenv("OPENAI_API_KEY"), "none"))
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	answer, err = io.ReadAll(resp.Body)
	return resp.StatusCode, answer, err
}

// until returns when the runtime first answered with a status.
func until(ctx context.Context, path, status string) (time.Time, error) {
	for {
		got, _, err := view(ctx, path, "Read the text.")
		if err == nil && fmt.Sprint(got) == status {
			return time.Now(), nil
		}
		select {
		case <-ctx.Done():
			return time.Time{}, ctx.Err()
		case <-time.After(5 * time.Millisecond):
		}
	}
}
