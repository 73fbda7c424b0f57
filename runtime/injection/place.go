// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package injection

import (
	"strconv"
	"strings"

	"github.com/visionoperator/vision-operator/runtime/message"
	"github.com/visionoperator/vision-operator/runtime/router"
	"github.com/visionoperator/vision-operator/runtime/tokens"
)

// Place says where images of tool calls are put for a model, as one of router's
// ToolImages values: where its provider declares it, or where the dialect and the
// model's name tell it.
//
// Anthropic's and OpenAI's Responses take images in results of tools, and Gemini
// does from 3 on; so a Gemini name without a version, which is an alias of a newer
// one, counts as such. Tool messages of OpenAI chat are text alone, so there a
// user's message follows, which Mistral's templates take after an assistant's only.
func Place(d message.Dialect, model string, declared *router.Model) string {
	family := ""
	if declared != nil {
		if declared.ToolImages != "" {
			return declared.ToolImages
		}
		family = declared.Family
	}
	switch d {
	case message.AnthropicMessages, message.OpenAIResponses:
		return router.ToolImagesInToolResult
	case message.GeminiContents:
		if olderGemini(model, tokens.Find(model, family).Name()) {
			return router.ToolImagesUserMessage
		}
		return router.ToolImagesInToolResult
	}
	switch tokens.Find(model, family).Name() {
	case "mistral", "pixtral":
		return router.ToolImagesAssistantThenUser
	}
	return router.ToolImagesUserMessage
}

// olderGemini reports whether a model that is reached by Gemini's protocol takes
// no images in a function's response: Gemma, and Gemini 1 and 2.
func olderGemini(model, family string) bool {
	switch family {
	case "gemini-classic", "gemini-2.5", "gemini-gdc", "gemma-3", "gemma-4":
		return true
	}
	_, version, found := strings.Cut(strings.ToLower(model), "gemini-")
	if !found {
		return false
	}
	end := 0
	for end < len(version) && version[end] >= '0' && version[end] <= '9' {
		end++
	}
	major, err := strconv.Atoi(version[:end])
	return err == nil && major < 3
}
