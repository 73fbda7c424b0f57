// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/visionoperator/vision-operator/cmd/vision-ocr/internal/observe"
	"github.com/visionoperator/vision-operator/cmd/vision-ocr/internal/picture"
	"github.com/visionoperator/vision-operator/cmd/vision-ocr/internal/tesseract"
)

var update = flag.Bool("update", false, "write the golden files anew")

// reader stands in for the engine, which main's tests run for real.
type reader func(ctx context.Context, pixels *picture.Raster) (tesseract.Page, error)

func (r reader) Recognise(ctx context.Context, pixels *picture.Raster) (tesseract.Page, error) {
	return r(ctx, pixels)
}

// threeLines is what the stand-in reads everywhere.
func threeLines(context.Context, *picture.Raster) (tesseract.Page, error) {
	page := tesseract.Page{Width: 64, Height: 33, Blocks: []tesseract.Block{{Box: tesseract.Box{X: 1, Y: 2, Width: 60, Height: 30}}}}
	for i, line := range []string{"Disk full", "on node seven", "since 09:42"} {
		l := tesseract.Line{Box: tesseract.Box{X: 1, Y: 2 + 10*i, Width: 60, Height: 9}, Paragraph: 1}
		for _, w := range strings.Fields(line) {
			l.Words = append(l.Words, tesseract.Word{Text: w, Confidence: 0.9})
		}
		page.Blocks[0].Lines = append(page.Blocks[0].Lines, l)
	}
	return page, nil
}

func options(r reader) Options {
	return Options{
		Recogniser: r, Engine: observe.Engine{Version: "5.3.0", Languages: "eng"}, Model: "tesseract", MaxConcurrent: 1,
		Timeout: 30 * time.Second, MaxBodyBytes: 1 << 20, Log: slog.New(slog.DiscardHandler),
		Now: func() time.Time { return time.Unix(1_790_000_000, 0) },
	}
}

func post(h http.Handler, body string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, "/v1/chat/completions", strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

var answerID = regexp.MustCompile(`chatcmpl-[A-Z2-7]{26}`)

// TestTheWire sends testdata/*.request.json and compares status, type and
// bytes of the answers with *.response.txt.
func TestTheWire(t *testing.T) {
	h := NewHandler(options(threeLines))
	requests, err := filepath.Glob("testdata/*.request.json")
	if err != nil || len(requests) == 0 {
		t.Fatalf("found no requests: %v", err)
	}
	known := map[string]bool{}
	for _, path := range requests {
		golden := strings.TrimSuffix(path, ".request.json") + ".response.txt"
		known[golden] = true
		t.Run(strings.TrimSuffix(filepath.Base(path), ".request.json"), func(t *testing.T) {
			request, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			w := post(h, string(request))
			got := fmt.Sprintf("%d %s\n\n%s", w.Code, w.Header().Get("Content-Type"), answerID.ReplaceAllString(w.Body.String(), "chatcmpl-ID"))
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatalf("%v (go test -update writes it)", err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("answer (-want +got):\n%s", diff)
			}
		})
	}
	responses, err := filepath.Glob("testdata/*.response.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range responses {
		if !known[path] {
			t.Errorf("%s belongs to no request", path)
		}
	}
}

func simple() string { return body("", imagePart("data:image/png;base64,"+onePixel)) }

func code(t *testing.T, w *httptest.ResponseRecorder) string {
	t.Helper()
	var out struct {
		Error struct {
			Message, Type, Code string
		}
	}
	if err := json.Unmarshal(w.Body.Bytes(), &out); err != nil || out.Error.Message == "" || out.Error.Type == "" {
		t.Fatalf("not an error in OpenAI's shape: %s", w.Body)
	}
	return out.Error.Code
}

func TestOnlyTheKeyOpensTheDoor(t *testing.T) {
	o := options(threeLines)
	o.APIKey = "correct horse"
	h := NewHandler(o)
	for header, want := range map[string]int{
		"": 401, "Bearer": 401, "Bearer wrong": 401, "Bearer correct hors": 401, "Basic correct horse": 401,
		"Bearer correct horse": 200, "bearer correct horse": 200,
	} {
		w := post(h, simple(), "Authorization", header)
		if w.Code != want {
			t.Errorf("%q: got %d", header, w.Code)
		}
		if want == 401 && code(t, w) != "invalid_api_key" {
			t.Errorf("%q: got %s", header, w.Body)
		}
	}
	for path, want := range map[string]int{"/v1/models": 401, "/v1/models/tesseract": 401, "/healthz": 200} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		if w.Code != want {
			t.Errorf("%s without a key: got %d", path, w.Code)
		}
	}
}

func TestModelsAndUnknownAddresses(t *testing.T) {
	h := NewHandler(options(threeLines))
	for _, test := range []struct {
		method, path string
		status       int
		holds        string
	}{
		{"GET", "/v1/models", 200, `{"object":"list","data":[{"id":"tesseract","object":"model","created":1790000000,"owned_by":"vision-operator"}]}`},
		{"GET", "/v1/models/tesseract", 200, `{"id":"tesseract",`},
		{"GET", "/v1/models/gpt/4", 404, `"code":"model_not_found"`},
		{"GET", "/v1/chat/completions", 404, `"code":"unknown_url"`},
		{"POST", "/v1/responses", 404, `"code":"unknown_url"`},
		{"GET", "/healthz", 200, "ok"},
	} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(test.method, test.path, nil))
		if w.Code != test.status || !strings.Contains(w.Body.String(), test.holds) {
			t.Errorf("%s %s: got %d %s", test.method, test.path, w.Code, w.Body)
		}
	}
}

func TestWhatIsRefusedBeforeReading(t *testing.T) {
	h := NewHandler(options(func(context.Context, *picture.Raster) (tesseract.Page, error) {
		t.Error("the engine was asked")
		return tesseract.Page{}, nil
	}))
	if w := post(h, simple(), "Content-Type", "text/plain"); w.Code != 415 || code(t, w) != "unsupported_media_type" {
		t.Errorf("a form's content type: got %d %s", w.Code, w.Body)
	}
	if w := post(h, strings.Repeat(" ", 1<<20+1)); w.Code != 413 || code(t, w) != "request_too_large" {
		t.Errorf("a body too large: got %d %s", w.Code, w.Body)
	}
	if w := post(h, strings.Replace(simple(), `"tesseract"`, `"gpt-6"`, 1)); w.Code != 404 || code(t, w) != "model_not_found" {
		t.Errorf("another model: got %d %s", w.Code, w.Body)
	}
	// A good image does not let a bad one behind it through to the engine.
	huge := "iVBORw0KGgoAAAANSUhEUgABhqAAAYagCAIAAAAnMJyf" // IHDR of 100000x100000
	w := post(h, body("", imagePart("data:image/png;base64,"+onePixel), imagePart("data:image/png;base64,"+huge)))
	if w.Code != 400 || code(t, w) != "image_too_large" || !strings.Contains(w.Body.String(), "messages[1].content[1].image_url") {
		t.Errorf("an image too large: got %d %s", w.Code, w.Body)
	}
	if w := post(h, body("", imagePart("data:image/png;base64,aGVsbG8="))); w.Code != 400 || code(t, w) != "invalid_image_format" {
		t.Errorf("no image at all: got %d %s", w.Code, w.Body)
	}
}

func TestAFullHouseIsTurnedAwayAndRecovers(t *testing.T) {
	release := make(chan struct{})
	inside := make(chan struct{}, 100)
	var most, now int
	var mu sync.Mutex
	h := NewHandler(options(func(ctx context.Context, p *picture.Raster) (tesseract.Page, error) {
		mu.Lock()
		now++
		most = max(most, now)
		mu.Unlock()
		inside <- struct{}{}
		<-release
		mu.Lock()
		now--
		mu.Unlock()
		return threeLines(ctx, p)
	}))
	codes := make(chan *httptest.ResponseRecorder, 100)
	const places = queuePerSlot + 1
	for range places + 4 {
		go func() { codes <- post(h, simple()) }()
	}
	<-inside
	for range 4 {
		w := <-codes
		if w.Code != 503 || w.Header().Get("Retry-After") != "2" || code(t, w) != "overloaded" {
			t.Errorf("one too many: got %d %v %s", w.Code, w.Header(), w.Body)
		}
	}
	close(release)
	for range places {
		if w := <-codes; w.Code != 200 {
			t.Errorf("one that waited: got %d %s", w.Code, w.Body)
		}
	}
	if most != 1 {
		t.Errorf("%d were recognised at a time", most)
	}
	if w := post(h, simple()); w.Code != 200 {
		t.Errorf("afterwards: got %d", w.Code)
	}
}

func TestLargeBodiesTogetherAreNoLargerThanTheLargest(t *testing.T) {
	inside, release := make(chan struct{}, 3), make(chan struct{})
	o := options(func(ctx context.Context, p *picture.Raster) (tesseract.Page, error) {
		inside <- struct{}{}
		select {
		case <-release:
			return threeLines(ctx, p)
		case <-ctx.Done():
			return tesseract.Page{}, &tesseract.Failure{Doing: "recognising text", Err: ctx.Err()}
		}
	})
	large := simple() + strings.Repeat(" ", smallBody)
	o.MaxConcurrent, o.MaxBodyBytes = 3, int64(len(large))
	h := NewHandler(o)
	first, small := make(chan *httptest.ResponseRecorder), make(chan *httptest.ResponseRecorder)
	go func() { first <- post(h, large) }()
	<-inside
	go func() { small <- post(h, simple()) }()
	<-inside // which waits for nothing
	r := httptest.NewRequest(http.MethodPost, "/v1/chat/completions", strings.NewReader(large))
	r.Header.Set("Content-Type", "application/json")
	soon, stop := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer stop()
	second := httptest.NewRecorder()
	h.ServeHTTP(second, r.WithContext(soon))
	if second.Code != 504 || len(inside) != 0 {
		t.Errorf("there was room for a second body: got %d %s", second.Code, second.Body)
	}
	close(release)
	if w := <-first; w.Code != 200 {
		t.Errorf("the first: got %d", w.Code)
	}
	if w := <-small; w.Code != 200 {
		t.Errorf("the small one: got %d", w.Code)
	}
	if w := post(h, large); w.Code != 200 {
		t.Errorf("afterwards: got %d", w.Code)
	}
}

func TestOneImageAtATimeIsDecoded(t *testing.T) {
	g := newGate(4, 1)
	if err := g.beginDecoding(t.Context()); err != nil {
		t.Fatal(err)
	}
	gone, leave := context.WithCancel(t.Context())
	leave()
	if err := g.beginDecoding(gone); err == nil {
		t.Error("two are decoded at a time")
	}
	g.endDecoding()
	if err := g.beginDecoding(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestTimeIsBounded(t *testing.T) {
	o := options(func(ctx context.Context, _ *picture.Raster) (tesseract.Page, error) {
		<-ctx.Done()
		return tesseract.Page{}, &tesseract.Failure{Doing: "recognising text", Err: ctx.Err()}
	})
	o.Timeout = 20 * time.Millisecond
	if w := post(NewHandler(o), simple()); w.Code != 504 || code(t, w) != "timeout" {
		t.Errorf("got %d %s", w.Code, w.Body)
	}
}

func TestNeitherErrorsNorLogsRepeatTheRequest(t *testing.T) {
	var log bytes.Buffer
	o := options(func(context.Context, *picture.Raster) (tesseract.Page, error) {
		return tesseract.Page{}, errors.New("segmentation fault")
	})
	o.Log, o.APIKey = slog.New(slog.NewJSONHandler(&log, nil)), "the-key"
	w := post(NewHandler(o), body("", imagePart("data:image/png;base64,"+onePixel), `{"type":"text","text":"private question"}`), "Authorization", "Bearer the-key")
	if w.Code != 500 || code(t, w) != "recognition_failed" {
		t.Errorf("got %d %s", w.Code, w.Body)
	}
	if !strings.Contains(log.String(), "segmentation fault") || !strings.Contains(log.String(), `"status":500`) {
		t.Errorf("the log does not tell: %s", log.String())
	}
	for _, secret := range []string{onePixel, "private question", "the-key"} {
		if strings.Contains(log.String(), secret) || strings.Contains(w.Body.String(), secret) {
			t.Errorf("%q shows", secret)
		}
	}
}

func TestATokenLimitNeverBreaksAnObject(t *testing.T) {
	h := NewHandler(options(threeLines))
	whole := len(content(t, post(h, body(`,"response_format":{"type":"json_object"}`, imagePart("data:image/png;base64,"+onePixel))), "stop"))
	for limit := 200; limit < whole/bytesPerToken+5; limit += 7 {
		w := post(h, body(fmt.Sprintf(`,"response_format":{"type":"json_object"},"max_tokens":%d`, limit), imagePart("data:image/png;base64,"+onePixel)))
		text := content(t, w, "stop")
		var got observe.Observation
		if err := json.Unmarshal([]byte(text), &got); err != nil || len(text) > limit*bytesPerToken {
			t.Fatalf("limit %d: %d bytes, %v", limit, len(text), err)
		}
		if said := strings.Contains(text, "token limit"); said != (len(got.OCR) < 3) {
			t.Errorf("limit %d: %d lines, said so: %v", limit, len(got.OCR), said)
		}
	}
	w := post(h, body(`,"response_format":{"type":"json_object"},"max_tokens":10`, imagePart("data:image/png;base64,"+onePixel)))
	if text := content(t, w, "length"); len(text) != 40 {
		t.Errorf("no room at all: %d bytes", len(text))
	}
}

func content(t *testing.T, w *httptest.ResponseRecorder, reason string) string {
	t.Helper()
	data, err := io.ReadAll(w.Body)
	if err != nil {
		t.Fatal(err)
	}
	var out completion
	if err := json.Unmarshal(data, &out); err != nil || len(out.Choices) != 1 {
		t.Fatalf("got %d %s", w.Code, data)
	}
	if got := *out.Choices[0].FinishReason; got != reason {
		t.Errorf("the finish reason is %q, not %q", got, reason)
	}
	if out.Usage.TotalTokens != out.Usage.PromptTokens+out.Usage.CompletionTokens || out.Usage.PromptTokens < 1 {
		t.Errorf("usage %+v", out.Usage)
	}
	return out.Choices[0].Message.Content
}
