// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package mcp offers the ViewImage tool over the Model Context Protocol, by
// streamable HTTP and by standard input and output, with the official SDK.
//
// A call's content is the whole observation as text and its structuredContent
// is the whole result, equal to what POST /v1/view-image answers; hosts show
// their model one or the other. Image bytes are in neither.
package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/visionoperator/vision-operator/runtime/fault"
	"github.com/visionoperator/vision-operator/runtime/observation"
	"github.com/visionoperator/vision-operator/runtime/serve"
	"github.com/visionoperator/vision-operator/runtime/serve/guard"
	"github.com/visionoperator/vision-operator/runtime/serve/reply"
	"github.com/visionoperator/vision-operator/runtime/serve/tool"
)

// Path is where the streamable HTTP transport is served.
const Path = "/mcp"

// instructions are what a host may show its model about the whole server.
const instructions = "Use ViewImage whenever an image file matters to the task: it returns what the image shows as text. " +
	"A failed call says in its hint what to do instead."

// NewServer returns an MCP server with the ViewImage tool. One server serves
// any number of sessions.
func NewServer(view tool.View, version string) *sdk.Server {
	server := sdk.NewServer(
		&sdk.Implementation{Name: "vision-runtime", Title: "Vision runtime", Version: version},
		&sdk.ServerOptions{Instructions: instructions, Capabilities: &sdk.ServerCapabilities{Tools: &sdk.ToolCapabilities{}}},
	)
	closedWorld := false
	// The plain AddTool hands over the arguments as they came. The SDK's typed
	// one reads them into a struct first, where duplicates are lost.
	server.AddTool(&sdk.Tool{
		Name:         tool.Name,
		Title:        "View image",
		Description:  tool.Description,
		InputSchema:  tool.InputSchema(),
		OutputSchema: tool.OutputSchema(),
		Annotations:  &sdk.ToolAnnotations{Title: "View image", ReadOnlyHint: true, IdempotentHint: true, OpenWorldHint: &closedWorld},
	}, handler(view))
	return server
}

// handler answers calls of the tool. Failures of the tool are results, so that
// the model sees them; nothing it does is an error of the protocol.
func handler(view tool.View) sdk.ToolHandler {
	return func(ctx context.Context, request *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		call, err := readCall(request.Params)
		if err != nil {
			return failed(reply.NewFailure(err, nil))
		}
		result, err := view(ctx, call)
		if err != nil {
			return failed(reply.NewFailure(err, result))
		}
		return answer(observation.Text(result), result, false)
	}
}

// readCall reads the arguments, and the caller's own model out of _meta, where
// hosts put what their model did not write.
func readCall(params *sdk.CallToolParamsRaw) (tool.Call, error) {
	args, err := tool.Decode(params.Arguments)
	if err != nil {
		return tool.Call{}, err
	}
	where := "_meta[" + strconv.Quote(tool.PrimaryModelMeta) + "]"
	said, given := params.Meta[tool.PrimaryModelMeta]
	if !given {
		return tool.Call{Args: args}, nil
	}
	text, ok := said.(string)
	if !ok {
		return tool.Call{}, tool.BadPrimaryModel(where, kindOf(said))
	}
	primary, err := tool.PrimaryModel(where, text)
	return tool.Call{Args: args, PrimaryModel: primary}, err
}

// kindOf names the JSON type of a decoded value that is no string.
func kindOf(value any) string {
	switch value.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case map[string]any:
		return "object"
	case []any:
		return "array"
	}
	return "number"
}

func failed(failure *reply.Failure) (*sdk.CallToolResult, error) {
	return answer(failureText(failure), failure, true)
}

func answer(text string, structured any, isError bool) (*sdk.CallToolResult, error) {
	body, err := json.Marshal(structured)
	if err != nil {
		return nil, fmt.Errorf("writing tool result: %w", err)
	}
	return &sdk.CallToolResult{
		Content:           []sdk.Content{&sdk.TextContent{Text: text}},
		StructuredContent: json.RawMessage(body),
		IsError:           isError,
	}, nil
}

// Route serves the streamable HTTP transport at Path while enabled says so,
// which is asked for every request, because the policy can change.
//
// Each request stands alone and is answered with one JSON message: a restarted
// sidecar loses no session, and an idle one holds none.
func Route(server *sdk.Server, enabled func() bool) serve.Route {
	stream := sdk.NewStreamableHTTPHandler(
		func(*http.Request) *sdk.Server { return server },
		&sdk.StreamableHTTPOptions{
			Stateless:                    true,
			JSONResponse:                 true,
			MaxRequestBodyBytes:          guard.MaxJSONBytes,
			PropagateRequestCancellation: true,
		},
	)
	post := reply.Methods(map[string]http.HandlerFunc{http.MethodPost: stream.ServeHTTP})
	return serve.Route{Path: Path, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !enabled() {
			reply.Fault(w, disabled())
			return
		}
		post.ServeHTTP(w, r)
	})}
}

func disabled() *fault.Fault {
	f := fault.New(fault.PolicyDenied, "MCPDisabled", "the policy does not offer the tool over MCP").
		Hint("Use POST /v1/view-image, or ask the platform team to set runtime.mcp in the VisionPolicy.")
	f.HTTPStatus = http.StatusNotFound
	return f
}

// ServeStdio serves one session over a pair of streams, newline-delimited
// JSON-RPC, until the peer closes in or ctx ends.
func ServeStdio(ctx context.Context, server *sdk.Server, in io.ReadCloser, out io.WriteCloser) error {
	err := server.Run(ctx, &sdk.IOTransport{Reader: in, Writer: out, MaxLineLength: guard.MaxJSONBytes})
	if err != nil && ctx.Err() == nil {
		return fmt.Errorf("serving MCP over standard input: %w", err)
	}
	return nil
}
