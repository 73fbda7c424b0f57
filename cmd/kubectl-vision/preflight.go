// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/visionoperator/vision-operator/runtime/message"
	"github.com/visionoperator/vision-operator/runtime/review"
)

const preflightHelp = `Say what would become of a model request, or of images in one, before anything
is sent: which images are admitted, left out or refused, what they cost, and why.
The runtime decides by the same code. No cluster, model or vendor is asked.

  kubectl vision preflight request.json -f policy.yaml -f provider.yaml -n team
  kubectl vision preflight photo.jpg scan.png --model claude-opus-4-7
  kubectl vision preflight - --dialect gemini-contents --model gemini-3-pro -o json < body.json

A FILE holds the body of a model request in JSON, or a VisionReview with one; it
is told by its content, as images are. - is standard input. Several files are
images: all of one message, so that none of them may be left out. Where they are
more than limits.request.maxProbedPaths, none is opened.

The limits are those of a policy, compiled as "kubectl vision render" does it:
--policy names one of the objects of --filename, --policy-file is a file that
holds it, and without either the namespace's only policy counts. Where there is
none, every limit of a policy has its default. What vendors publish, and what
providers declare of a model, holds besides.

--model is a route (provider@endpoint/model) of the policy or the bare name of a
model, and wins over the request's own. Without it the request's own counts,
then the policy's default.

With -o json the response of a VisionReview is printed: allowed, status with the
error body to answer, warnings, decisions, tokens, and the patch that leaves
images out. The decisions on image files have the path as given as id.

The exit code is
  0  when the request is allowed, be it with images left out
  1  when it is refused, or something could not be read or judged
  2  when the command line cannot work

Usage:
  kubectl vision preflight FILE|IMAGE... [flags]

Flags:
`

// preflightOptions are preflight's arguments and flags.
type preflightOptions struct {
	files             []string
	policy            string
	policyFile        string
	objects           []string
	namespace         string
	operatorNamespace string
	model             string
	dialect           message.Dialect
	json              bool
}

func parsePreflight(args []string, stdout io.Writer) (preflightOptions, error) {
	var o preflightOptions
	var output string
	flags := pflag.NewFlagSet("preflight", pflag.ContinueOnError)
	flags.SortFlags = false
	flags.StringVar(&o.policy, "policy", "", "`NAME` of the VisionPolicy whose limits hold")
	flags.StringVar(&o.policyFile, "policy-file", "", "`FILE` with the one VisionPolicy whose limits hold, or - for standard input")
	flags.StringArrayVarP(&o.objects, "filename", "f", nil, "`FILE` with providers and policies, directory, or - for standard input (repeatable)")
	flags.StringVarP(&o.namespace, "namespace", "n", "default", "`NAMESPACE` of the policy")
	flags.StringVar(&o.operatorNamespace, "operator-namespace", "vision-system", "`NAMESPACE` of the operator, where baselines may live")
	flags.StringVar(&o.model, "model", "", "`MODEL` that the request is for: a route or a bare name")
	flags.StringVar((*string)(&o.dialect), "dialect", "", "`DIALECT` of the request: "+dialects()+"; told by its shape if omitted")
	flags.StringVarP(&output, "output", "o", "text", "`FORMAT` to print: text or json")
	flags.Usage = func() { fmt.Fprint(stdout, preflightHelp, flags.FlagUsages()) }
	if err := flags.Parse(args); err != nil {
		if err == pflag.ErrHelp { //nolint:errorlint // pflag returns it bare
			return o, err
		}
		return o, &usageError{problem: err.Error()}
	}
	o.files, o.json = flags.Args(), output == "json"
	if output != "text" && output != "json" {
		return o, &usageError{problem: fmt.Sprintf("--output is %q; the outputs are text and json", output)}
	}
	return o, o.check()
}

// check says why options cannot work together.
func (o *preflightOptions) check() error {
	stdins := 0
	for _, path := range slices.Concat(o.files, o.objects, []string{o.policyFile}) {
		if path == "-" {
			stdins++
		}
	}
	switch {
	case len(o.files) == 0:
		return &usageError{problem: "FILE is missing; name a model request or images, or - for standard input"}
	case stdins > 1:
		return &usageError{problem: fmt.Sprintf("- stands for standard input %d times; it can be read once", stdins)}
	case o.namespace == "":
		return &usageError{problem: "--namespace is empty; name the namespace of the policy"}
	case o.policy != "" && o.policyFile != "":
		return &usageError{problem: fmt.Sprintf("--policy is %q and --policy-file %q; give one of them", o.policy, o.policyFile)}
	case o.policy != "" && len(o.objects) == 0:
		return &usageError{problem: fmt.Sprintf("--policy is %q without --filename; name the files that hold it", o.policy)}
	case o.dialect != "" && !slices.Contains(message.Dialects(), o.dialect):
		return &usageError{problem: fmt.Sprintf("--dialect is %q; the dialects are %s", o.dialect, dialects())}
	}
	return nil
}

// dialects are the names of the dialects, for a message.
func dialects() string {
	var names []string
	for _, d := range message.Dialects() {
		names = append(names, string(d))
	}
	return strings.Join(names, ", ")
}

// runPreflight is the command preflight.
func runPreflight(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) error {
	options, err := parsePreflight(args, stdout)
	switch {
	case errors.Is(err, pflag.ErrHelp):
		return nil
	case err != nil:
		return err
	}
	governed, err := govern(&options, stdin)
	if err != nil {
		return err
	}
	asked, err := ask(&options, governed, stdin)
	if err != nil {
		return err
	}
	for _, remark := range governed.remarks {
		fmt.Fprintln(stderr, remark)
	}
	response, err := asked.judge(ctx, governed)
	if err != nil {
		return fmt.Errorf("judging the request: %w", err)
	}
	out := indented(response)
	if !options.json {
		out = asked.text(governed, response)
	}
	if _, err := io.WriteString(stdout, out); err != nil {
		return fmt.Errorf("printing: %w", err)
	}
	if !response.Allowed {
		return &refusedError{reason: response.Status.Reason, message: response.Status.Message}
	}
	return nil
}

// judge gives the response to what is asked.
func (a *asked) judge(ctx context.Context, g *governed) (*review.Response, error) {
	if refusal := a.refusal(); refusal != nil {
		return refusal, nil
	}
	response, err := review.Review(ctx, &a.request, g.grants)
	if err == nil {
		a.rename(response)
	}
	return response, err
}

// refusedError is a request that may not be sent.
type refusedError struct{ reason, message string }

// Error names the reason, the limit and the numbers.
func (e *refusedError) Error() string {
	return fmt.Sprintf("preflight: the request is refused: %s: %s", e.reason, e.message)
}
