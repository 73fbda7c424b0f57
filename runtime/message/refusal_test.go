// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package message

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/visionoperator/vision-operator/runtime/fault"
)

var update = flag.Bool("update", false, "write the golden files anew")

// faults are what the runtime refuses a model request with.
func faults() map[string]*fault.Fault {
	body := fault.New(fault.BudgetExceeded, "BodyTooLarge", "the body is 65 MiB (68157440 bytes), the limit 64 MiB (67108864 bytes)")
	body.HTTPStatus = 413
	quota := fault.New(fault.QuotaExceeded, "Observations", "the quota is used up")
	quota.Retryable, quota.RetryAfter = true, 1500*time.Millisecond
	down := fault.New(fault.RouterUnavailable, "", "no router document was read yet")
	down.Retryable = true
	missing := fault.New(fault.PolicyDenied, "NotFound", "nobody serves <model>")
	missing.HTTPStatus = 404
	return map[string]*fault.Fault{
		"budget":      fault.New(fault.BudgetExceeded, "ImageBytes", "messages[0].content[1] has 20971521 bytes, the limit is 20 MiB (20971520 bytes)").Hint("Send a smaller image.").With("field", "messages[0].content[1]"),
		"body":        body,
		"denied":      fault.New(fault.PolicyDenied, "ModelNotAllowed", "the policy does not allow the model"),
		"missing":     missing,
		"unreadable":  fault.New(fault.ImageReadFailed, "", "the image cannot be decoded"),
		"no-model":    fault.New(fault.VisionAdapterUnavailable, "ImageRequired", "the model takes no images"),
		"quota":       quota,
		"observation": fault.New(fault.VisionObservationFailed, "Upstream", "the vision model did not answer").Because(errors.New("key sk-secret")),
		"router":      down,
		"invalid":     fault.New(fault.InvalidToolInput, "NotJSON", "the body is not JSON"),
	}
}

func TestErrorBodiesAreTheDialectsOwn(t *testing.T) {
	written := map[string]bool{}
	for name, f := range faults() {
		for _, d := range Dialects() {
			status, body := ErrorBody(d, f)
			if !json.Valid(body) || bytes.Contains(body, []byte("sk-secret")) || !bytes.Contains(body, []byte(f.Kind)) {
				t.Errorf("%s %s: %s", d, name, body)
			}
			var indented bytes.Buffer
			_ = json.Indent(&indented, body, "", "  ")
			got := "HTTP " + strconv.Itoa(status) + "\n" + indented.String() + "\n"
			file := filepath.Join("testdata", "errors", string(d)+"-"+name+".txt")
			written[file] = true
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil || got != string(want) {
				t.Errorf("%s: got\n%s\nwant\n%s %v", file, got, want, err)
			}
		}
	}
	files, err := filepath.Glob(filepath.Join("testdata", "errors", "*"))
	if err != nil || len(files) != len(written) {
		t.Errorf("%d golden files for %d errors, %v: remove the stale ones", len(files), len(written), err)
	}
}

func TestAnErrorOfAnUnknownDialectIsOpenAIs(t *testing.T) {
	_, body := ErrorBody("soap", fault.New(fault.PolicyDenied, "", "no"))
	if !strings.HasPrefix(string(body), `{"error":{"message":"no","type":"invalid_request_error"`) {
		t.Errorf("%s", body)
	}
}
