// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"slices"

	"github.com/spf13/pflag"

	"github.com/visionoperator/vision-operator/api/v1alpha1"
	"github.com/visionoperator/vision-operator/api/v1alpha1/validation"
	"github.com/visionoperator/vision-operator/controllers/compile"
	"github.com/visionoperator/vision-operator/runtime/router"
)

const renderHelp = `Compile VisionProviders and VisionPolicies of files into the router document of
one namespace, exactly as the operator would publish it, without a cluster.

  kubectl vision render -f config/samples -n vision-demo > router.json
  kubectl vision render -f policy.yaml -f provider.yaml -n team --verdicts
  kubectl vision render -f team.yaml -f baselines.yaml -n team --explain

A file holds YAML or JSON, several documents or Lists among them; of a directory
the files *.yaml, *.yml and *.json are read, and - is standard input. Objects
without a namespace belong to --namespace; of Namespaces the labels are read, by
which baselines and providers of other namespaces select; other kinds are passed
over. A field that a kind does not have is an error. What the API server would refuse by the
CRDs' schemas and CEL rules is left out, and so is what the operator would not
accept; webhooks and policies of a cluster are not known here.

The document goes to standard output, warnings and references that do not
resolve to standard error. The exit code is
  0  when every object of the namespace took part
  1  when one was left out, or, with --strict, a reference does not resolve or a
     policy has no usable route (the document is printed all the same); when the
     files hold objects of other namespaces only, and no baseline serves this one;
     when a file could not be read
  2  when the command line cannot work

Usage:
  kubectl vision render -f FILE... -n NAMESPACE [flags]

Flags:
`

// renderOptions are render's flags.
type renderOptions struct {
	files             []string
	namespace         string
	operatorNamespace string
	verdicts          bool
	explain           bool
	strict            bool
}

func parseRender(args []string, stdout io.Writer) (renderOptions, error) {
	var o renderOptions
	flags := pflag.NewFlagSet("render", pflag.ContinueOnError)
	flags.SortFlags = false
	flags.StringArrayVarP(&o.files, "filename", "f", nil, "`FILE`, directory, or - for standard input (repeatable)")
	flags.StringVarP(&o.namespace, "namespace", "n", "", "`NAMESPACE` to compile for")
	flags.StringVar(&o.operatorNamespace, "operator-namespace", "vision-system", "`NAMESPACE` of the operator, where baselines may live")
	flags.BoolVar(&o.verdicts, "verdicts", false, "print what was decided of each object in place of the document")
	flags.BoolVar(&o.explain, "explain", false, "print where each field of each profile comes from in place of the document")
	flags.BoolVar(&o.strict, "strict", false, "also exit with 1 when a reference does not resolve or a policy has no usable route")
	flags.Usage = func() { fmt.Fprint(stdout, renderHelp, flags.FlagUsages()) }
	if err := flags.Parse(args); err != nil {
		if err == pflag.ErrHelp { //nolint:errorlint // pflag returns it bare
			return o, err
		}
		return o, &usageError{problem: err.Error()}
	}
	switch {
	case flags.NArg() > 0:
		return o, &usageError{problem: fmt.Sprintf("there is an argument %q that belongs to no flag", flags.Arg(0))}
	case len(o.files) == 0:
		return o, &usageError{problem: "--filename is missing; name a file, a directory, or - for standard input"}
	case o.namespace == "":
		return o, &usageError{problem: "--namespace is missing; name the namespace to compile for"}
	}
	return o, nil
}

// render reads, compiles and prints.
func render(o renderOptions, stdin io.Reader, stdout, stderr io.Writer) error {
	schemas, err := loadSchemas()
	if err != nil {
		return err
	}
	objects, err := readObjects(o.files, o.namespace, stdin, schemas)
	if err != nil {
		return err
	}
	in := objects.input(o.operatorNamespace)
	if err := objects.checkNamespace(in); err != nil {
		return err
	}
	out := compile.Compile(in)
	document, err := router.Marshal(out.Document)
	if err != nil {
		return fmt.Errorf("rendering the router of namespace %s: %w", o.namespace, err)
	}
	if o.verdicts || o.explain {
		document = nil
	}
	if o.verdicts {
		document = append(document, verdicts(in, out)...)
	}
	if o.explain {
		document = append(document, explanation(out)...)
	}
	if _, err := stdout.Write(document); err != nil {
		return fmt.Errorf("printing: %w", err)
	}
	for _, line := range slices.Concat(refusals(objects), remarks(in, out)) {
		fmt.Fprintln(stderr, line)
	}
	return judge(o.strict, objects, in, out)
}

// refusals are the API server's, a line for each problem.
func refusals(o *objects) []string {
	var lines []string
	for _, r := range o.refused {
		for _, problem := range r.problems {
			lines = append(lines, fmt.Sprintf("%s: refused by the API server: %s", r.object, problem))
		}
	}
	return lines
}

// remarks are what an author should know besides the document: the warnings
// that admission gives, and every verdict that is not good.
func remarks(in compile.Input, out compile.Output) []string {
	var lines []string
	for i := range in.Providers {
		p := &in.Providers[i]
		at := p.Namespace + "/" + p.Name
		v, considered := out.Providers[at]
		if !considered {
			continue
		}
		for _, w := range validation.ProviderWarnings(p) {
			lines = append(lines, fmt.Sprintf("warning: VisionProvider %s: %s", at, w))
		}
		lines = append(lines, notGood("VisionProvider "+at, v.Accepted)...)
	}
	for i := range in.Policies {
		p := &in.Policies[i]
		if p.Namespace != in.Namespace {
			continue
		}
		lines = append(lines, policyRemarks(fmt.Sprintf("VisionPolicy %s/%s", p.Namespace, p.Name), validation.PolicyWarnings(p), out.Policies[p.Name])...)
	}
	for name, v := range out.Baselines {
		lines = append(lines, policyRemarks(fmt.Sprintf("baseline %s/%s", in.OperatorNamespace, name), nil, v)...)
	}
	for name, v := range rejectedBaselines(in) {
		lines = append(lines, notGood("VisionPolicy "+name, v)...)
	}
	slices.Sort(lines)
	return lines
}

func policyRemarks(object string, warnings []string, v compile.PolicyVerdict) []string {
	var lines []string
	if v.ResolvedRefs.Reason == v1alpha1.ReasonFallbackNotUsable {
		warnings = append(slices.Clip(warnings), v.ResolvedRefs.Message)
	}
	if v.Overridden.OK {
		warnings = append(slices.Clip(warnings), v.Overridden.Message)
	}
	for _, w := range slices.Concat(warnings, v.Redundant, v.Unwise) {
		lines = append(lines, fmt.Sprintf("warning: %s: %s", object, w))
	}
	lines = append(lines, notGood(object, v.Accepted)...)
	if v.Accepted.OK {
		lines = append(lines, notGood(object, v.ResolvedRefs)...)
	}
	return lines
}

func notGood(object string, v compile.Verdict) []string {
	if v.OK {
		return nil
	}
	return []string{fmt.Sprintf("%s: %s: %s", object, v.Reason, v.Message)}
}
