// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"time"

	"github.com/visionoperator/vision-operator/runtime/fault"
	"github.com/visionoperator/vision-operator/runtime/reference"
)

// uploaded is a picture that the runtime keeps and no workspace holds.
type uploaded struct {
	*reference.Kept
	observation any // what the first look at it yielded
}

// uploadPicture sends a picture's bytes, looks at it by its reference, and reads
// what is kept of it. The pod has no such file.
func (d *demo) uploadPicture(ctx context.Context) error {
	sentence, err := makeUpSentence()
	if err != nil {
		return err
	}
	picture, err := drawSentence(sentence)
	if err != nil {
		return err
	}
	kept, err := d.upload(ctx, picture)
	if err != nil {
		return err
	}
	d.say("drew %q and uploaded it as %s", sentence, kept.URI)
	answer, err := d.look(ctx, kept.URI, sentencePrompt)
	if err != nil {
		return err
	}
	read := readText(answer.Observation)
	d.say("read: %q", read)
	if _, missing := compareWords(sentence, read); len(missing) > 0 {
		return fmt.Errorf("the observation lacks %q", missing)
	}
	d.kept = &uploaded{Kept: kept, observation: answer.Observation}
	return d.showReference(ctx)
}

// upload sends a picture to POST /v1/images.
func (d *demo) upload(ctx context.Context, picture []byte) (*reference.Kept, error) {
	kept := &reference.Kept{}
	err := d.ask(ctx, http.MethodPost, "/v1/images", picture, http.StatusCreated, kept)
	if err == nil && (!kept.Uploaded || kept.Reference.ByteCount != int64(len(picture))) {
		err = fmt.Errorf("uploading %d bytes: the runtime keeps %+v", len(picture), kept)
	}
	return kept, err
}

// showReference reads what is kept under the uploaded picture's reference.
func (d *demo) showReference(ctx context.Context) error {
	path := "/v1/references/" + d.kept.Reference.ID
	kept := &reference.Kept{}
	if err := d.ask(ctx, http.MethodGet, path, nil, http.StatusOK, kept); err != nil {
		return err
	}
	if !reflect.DeepEqual(kept, d.kept.Kept) {
		return fmt.Errorf("GET %s: %+v is kept; the upload was answered with %+v", path, kept, d.kept.Kept)
	}
	text, err := json.MarshalIndent(kept, "", "  ")
	if err != nil {
		return err
	}
	d.show("GET "+path, string(text))
	return nil
}

// ask calls the runtime, with a PNG as the body or without one, and decodes the answer.
func (d *demo) ask(ctx context.Context, method, path string, picture []byte, want int, into any) error {
	req, err := http.NewRequestWithContext(ctx, method, runtimeURL+path, bytes.NewReader(picture))
	if err != nil {
		return err
	}
	if picture != nil {
		req.Header.Set("Content-Type", "image/png")
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		return fmt.Errorf("reading the answer to %s %s: %w", method, path, err)
	}
	if resp.StatusCode != want {
		var refused struct {
			Error *fault.Fault `json:"error"`
		}
		if json.Unmarshal(data, &refused) == nil && refused.Error != nil {
			return fmt.Errorf("%s %s: %s: %w", method, path, resp.Status, refused.Error)
		}
		return fmt.Errorf("%s %s: %s; want %d", method, path, resp.Status, want)
	}
	if err := json.Unmarshal(data, into); err != nil {
		return fmt.Errorf("reading the answer to %s %s: %w", method, path, err)
	}
	return nil
}

// restartRuntime ends the runtime's process, as a container does that is
// restarted, and starts it on the same volumes: what the policy has persist, and
// what was uploaded, must be there.
func (d *demo) restartRuntime(ctx context.Context) error {
	d.processes.end(d.runtime)
	calls, err := d.providerCalls()
	if err != nil {
		return err
	}
	if err := d.runContainer(ctx, containerName+"-restarted"); err != nil {
		return err
	}
	for _, again := range []struct {
		path, prompt string
		want         any
	}{{"screenshot.png", prompt, d.seen.Observation}, {d.kept.URI, sentencePrompt, d.kept.observation}} {
		answer, err := d.look(ctx, again.path, again.prompt)
		if err != nil {
			return err
		}
		if !answer.Cached || !reflect.DeepEqual(any(answer.Observation), again.want) {
			return fmt.Errorf("asking for %s after the restart: the answer is not the one from before (cached: %t)", again.path, answer.Cached)
		}
		d.say("%s: the same observation from the cache in %s", again.path, answer.took.Round(10*time.Microsecond))
	}
	after, err := d.providerCalls()
	if err != nil {
		return err
	}
	if after != calls {
		return fmt.Errorf("the provider was called again: %d times before the restart, %d times now", calls, after)
	}
	return d.showReference(ctx)
}

// providerCalls counts the pictures that the provider read, by its log.
func (d *demo) providerCalls() (int, error) {
	log, err := os.ReadFile(filepath.Join(d.processes.logs, providerName+".log"))
	return bytes.Count(log, []byte("chat completion")), err
}
