// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package chat speaks OpenAI's Chat Completions protocol in front of the OCR
// engine: it reads requests (request.go), writes answers (answer.go,
// completion.go) and refusals (error.go), and bounds the work (gate.go).
// server.go is the rim.
package chat

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"runtime/debug"
	"strings"
	"time"

	"github.com/visionoperator/vision-operator/cmd/vision-ocr/internal/observe"
	"github.com/visionoperator/vision-operator/cmd/vision-ocr/internal/picture"
	"github.com/visionoperator/vision-operator/cmd/vision-ocr/internal/tesseract"
)

// Recogniser reads the text of one picture, until ctx ends.
type Recogniser interface {
	Recognise(ctx context.Context, pixels *picture.Raster) (tesseract.Page, error)
}

// Options are what a server is told.
type Options struct {
	Recogniser Recogniser
	// Engine is named in summaries.
	Engine observe.Engine
	// Model is the one model id served.
	Model string
	// APIKey, when not empty, must be sent as a bearer token.
	APIKey string
	// MaxConcurrent is how many requests are recognised at a time, at least
	// 1; eight times as many may wait.
	MaxConcurrent int
	// Timeout bounds one request: waiting, decoding and recognition together.
	Timeout time.Duration
	// MaxBodyBytes bounds a request's body.
	MaxBodyBytes int64
	// Log gets one line per completion request, never with its contents.
	Log *slog.Logger
	// Now tells the time; nil means time.Now.
	Now func() time.Time
}

type server struct {
	Options
	gate    *gate
	keyHash [sha256.Size]byte
	started time.Time
}

// NewHandler serves POST /v1/chat/completions, GET /v1/models,
// GET /v1/models/{id} and GET /healthz.
func NewHandler(o Options) http.Handler {
	if o.Now == nil {
		o.Now = time.Now
	}
	s := &server{Options: o, gate: newGate(max(o.MaxConcurrent, 1), o.MaxBodyBytes), keyHash: sha256.Sum256([]byte(o.APIKey)), started: o.Now()}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = io.WriteString(w, "ok\n")
	})
	mux.Handle("POST /v1/chat/completions", s.authenticated(s.completions))
	mux.Handle("GET /v1/models", s.authenticated(func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, http.StatusOK, modelList{Object: "list", Data: []modelEntry{s.model()}})
	}))
	mux.Handle("GET /v1/models/{id...}", s.authenticated(func(w http.ResponseWriter, r *http.Request) {
		if r.PathValue("id") != s.Model {
			s.unknownModel().write(w)
			return
		}
		writeJSON(w, http.StatusOK, s.model())
	}))
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		refusal(http.StatusNotFound, typeInvalidRequest, "", "unknown_url", "Unknown request URL or method. This server has POST /v1/chat/completions, GET /v1/models and GET /healthz.").write(w)
	})
	return mux
}

func (s *server) model() modelEntry {
	return modelEntry{ID: s.Model, Object: "model", Created: s.started.Unix(), OwnedBy: "vision-operator"}
}

func (s *server) unknownModel() *Error {
	return refusal(http.StatusNotFound, typeInvalidRequest, "model", "model_not_found", "The model does not exist here. This server serves '"+s.Model+"'.")
}

// authenticated lets a request through that carries the key, when one is set.
// Digests are compared, so that neither content nor length shows in the time.
func (s *server) authenticated(next http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.APIKey != "" {
			scheme, key, _ := strings.Cut(r.Header.Get("Authorization"), " ")
			sent := sha256.Sum256([]byte(strings.TrimSpace(key)))
			if !strings.EqualFold(scheme, "Bearer") || subtle.ConstantTimeCompare(sent[:], s.keyHash[:]) != 1 {
				w.Header().Set("WWW-Authenticate", "Bearer")
				refusal(http.StatusUnauthorized, typeInvalidRequest, "", "invalid_api_key", "Missing or incorrect API key: send it as 'Authorization: Bearer <key>'.").write(w)
				return
			}
		}
		next(w, r)
	})
}

// completions answers one request and logs how it went.
func (s *server) completions(w http.ResponseWriter, r *http.Request) {
	start := time.Now()
	req, answer, err := s.complete(w, r)
	attributes := []any{"duration", time.Since(start).Round(time.Millisecond).String()}
	if req != nil {
		attributes = append(attributes, "images", len(req.Images), "stream", req.Stream)
	}
	if err != nil {
		refused, ok := errors.AsType[*Error](err)
		if !ok {
			refused = s.failure(err)
		}
		refused.write(w)
		if refused.Code != nil {
			attributes = append(attributes, "code", *refused.Code)
		}
		s.Log.Info("chat completion", append(attributes, "status", refused.Status)...)
		return
	}
	head := completion{
		ID: "chatcmpl-" + rand.Text(), Created: s.Now().Unix(), Model: s.Model,
		SystemFingerprint: "tesseract-" + s.Engine.Version,
	}
	if req.Stream {
		writeStream(w, head, answer, req.IncludeUsage)
	} else {
		writeCompletion(w, head, answer)
	}
	s.Log.Info("chat completion", append(attributes, "status", http.StatusOK, "finish_reason", answer.FinishReason)...)
}

// complete goes from a request to its answer: enter, read, parse, recognise,
// compose. The request is given back with an error too, once it was parsed.
func (s *server) complete(w http.ResponseWriter, r *http.Request) (*Request, *Answer, error) {
	if mediaType, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); mediaType != "application/json" {
		return nil, nil, refusal(http.StatusUnsupportedMediaType, typeInvalidRequest, "", "unsupported_media_type", "Send the request with 'Content-Type: application/json'.")
	}
	if !s.gate.enter() {
		return nil, nil, s.busy()
	}
	defer s.gate.leave()
	ctx, cancel := context.WithTimeout(r.Context(), s.Timeout)
	defer cancel()
	release, err := s.gate.hold(ctx, r.ContentLength)
	if err != nil {
		return nil, nil, err
	}
	defer release()
	body, err := s.readBody(w, r)
	if err != nil {
		return nil, nil, err
	}
	req, err := ParseRequest(body)
	if err != nil {
		return nil, nil, err
	}
	if req.Model != s.Model {
		return req, nil, s.unknownModel()
	}
	pages, err := s.recognise(ctx, req.Images)
	if err != nil {
		return req, nil, err
	}
	answer, err := Compose(req, s.Engine, pages)
	return req, answer, err
}

func (s *server) readBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, s.MaxBodyBytes))
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return nil, refusal(http.StatusRequestEntityTooLarge, typeInvalidRequest, "", "request_too_large", "The request's body is larger than this server accepts.")
	}
	if err != nil {
		return nil, invalid("", "", "Reading the request's body failed.")
	}
	return body, nil
}

// recognise reads the images one after the other in one slot. All headers are
// checked before a slot is waited for.
func (s *server) recognise(ctx context.Context, images []Image) ([]tesseract.Page, error) {
	for _, image := range images {
		if _, err := picture.Probe(image.Data); err != nil {
			return nil, imageError(image.Param, err)
		}
	}
	if err := s.gate.begin(ctx); err != nil {
		return nil, err
	}
	defer s.gate.end()
	pages := make([]tesseract.Page, len(images))
	for i, image := range images {
		pixels, err := s.decode(ctx, image)
		if err != nil {
			return nil, err
		}
		if pages[i], err = s.Recogniser.Recognise(ctx, pixels); err != nil {
			return nil, err
		}
	}
	return pages, nil
}

// largePicture is from where on, in pixels, a decoder's garbage is collected at
// once: it is a multiple of what is kept.
const largePicture = 4_000_000

// decode decodes one image, while no other is decoded.
func (s *server) decode(ctx context.Context, image Image) (*picture.Raster, error) {
	if err := s.gate.beginDecoding(ctx); err != nil {
		return nil, err
	}
	defer s.gate.endDecoding()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if info, err := picture.Probe(image.Data); err == nil && info.Width*info.Height > largePicture {
		defer debug.FreeOSMemory()
	}
	pixels, err := picture.Decode(image.Data)
	if err != nil {
		return nil, imageError(image.Param, err)
	}
	return pixels, nil
}

// imageError says why an image was refused.
func imageError(param string, err error) error {
	bad, ok := errors.AsType[*picture.Error](err)
	switch {
	case !ok:
		return err
	case bad.Reason == picture.TooLarge:
		return invalid(param, "image_too_large", "Invalid '"+param+"': "+bad.Error()+".")
	case bad.Reason == picture.Broken:
		return invalid(param, "image_parse_error", "Invalid '"+param+"': the image is damaged, or a variant that this server cannot decode.")
	default:
		return unsupportedImage(param)
	}
}

func (s *server) busy() *Error {
	e := refusal(http.StatusServiceUnavailable, typeServer, "", "overloaded", "All places are taken. Please try again later.")
	e.RetryAfter = 2 * time.Second
	return e
}

// failure is the refusal for an error that is not the caller's fault.
func (s *server) failure(err error) *Error {
	if errors.Is(err, context.DeadlineExceeded) {
		return refusal(http.StatusGatewayTimeout, typeServer, "", "timeout", "The text was not recognised in the time allowed.")
	}
	if errors.Is(err, context.Canceled) {
		return refusal(499, typeServer, "", "cancelled", "The request was cancelled.")
	}
	s.Log.Error("recognising text failed", "error", err.Error())
	return refusal(http.StatusInternalServerError, typeServer, "", "recognition_failed", "The recognition engine failed.")
}
