// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"errors"
	"sort"
	"unicode/utf8"

	"github.com/visionoperator/vision-operator/cmd/vision-ocr/internal/observe"
	"github.com/visionoperator/vision-operator/cmd/vision-ocr/internal/tesseract"
)

const (
	// bytesPerToken and patchSide make the usage estimate. Nothing is counted
	// or billed here, but clients want numbers: a token per four bytes of
	// text, the usual rule of thumb, and a token per 32x32 pixels begun of an
	// image, as OpenAI's patch models charge before their multiplier.
	bytesPerToken = 4
	patchSide     = 32
)

// Usage is the estimate that every answer carries.
type Usage struct {
	PromptTokens     int `json:"prompt_tokens"`
	CompletionTokens int `json:"completion_tokens"`
	TotalTokens      int `json:"total_tokens"`
}

// Answer is what the assistant says.
type Answer struct {
	Content string
	// FinishReason is "stop", or "length" when Content was cut at the limit.
	FinishReason string
	Usage        Usage
}

// Compose answers a request from what was recognised in its images.
//
// A token limit never breaks an object that can be kept whole: fewer lines
// are listed, the uncertainties say so, and the reason is "stop". Plain text,
// and an object that does not fit even without lines, are cut with the reason
// "length", as OpenAI does. Its errors are *Error.
func Compose(req *Request, engine observe.Engine, pages []tesseract.Page) (*Answer, error) {
	content, err := write(req, engine, pages)
	if err != nil {
		if unfit, ok := errors.AsType[*observe.SchemaError](err); ok {
			return nil, invalid("response_format", "unsupported_json_schema", "The schema cannot be filled in: "+unfit.Error()+".")
		}
		return nil, refusal(500, typeServer, "", "", "Writing the answer failed.")
	}
	answer := &Answer{Content: content, FinishReason: "stop"}
	if limit := byteLimit(req.MaxTokens); len(content) > limit {
		answer.Content, answer.FinishReason = cutBytes(content, limit), "length"
	}
	answer.Usage = usage(req, pages, answer.Content)
	return answer, nil
}

// write gives the whole content, of an object as much as fits.
func write(req *Request, engine observe.Engine, pages []tesseract.Page) (string, error) {
	if req.Format == PlainText {
		return observe.PlainText(pages), nil
	}
	with := func(keep int) ([]byte, error) { return observe.Compose(engine, pages, keep).JSON(req.Schema) }
	data, err := with(observe.All)
	if err != nil || len(data) <= byteLimit(req.MaxTokens) {
		return string(data), err
	}
	// The first number of lines that is too many; one less fits.
	tooMany := sort.Search(observe.LineCount(pages), func(keep int) bool {
		shorter, err := with(keep)
		return err != nil || len(shorter) > byteLimit(req.MaxTokens)
	})
	data, err = with(max(tooMany-1, 0))
	return string(data), err
}

// byteLimit is how many bytes of content a token limit allows.
func byteLimit(tokens int) int {
	const unlimited = 1 << 62
	if tokens == 0 || tokens > unlimited/bytesPerToken {
		return unlimited
	}
	return tokens * bytesPerToken
}

// cutBytes keeps at most limit bytes of text, whole characters only.
func cutBytes(text string, limit int) string {
	for limit > 0 && !utf8.RuneStart(text[limit]) {
		limit--
	}
	return text[:limit]
}

func usage(req *Request, pages []tesseract.Page, content string) Usage {
	u := Usage{PromptTokens: tokens(req.TextBytes), CompletionTokens: tokens(len(content))}
	for _, p := range pages {
		u.PromptTokens += ((p.Width + patchSide - 1) / patchSide) * ((p.Height + patchSide - 1) / patchSide)
	}
	u.TotalTokens = u.PromptTokens + u.CompletionTokens
	return u
}

func tokens(bytes int) int { return (bytes + bytesPerToken - 1) / bytesPerToken }
