// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/pflag"
)

const explainHelp = `Say why a pod gets the vision runtime, or why it does not: every check that
admission makes, in order, and what each found; by the code of admission itself.

  kubectl vision explain pod/agent-7d9f -n team                 a pod of the cluster
  kubectl vision explain deployment/agent -n team               the pods that it makes next
  kubectl vision explain -f agent.yaml -f objects.yaml          files, without a cluster
  kubectl vision explain -f agent.yaml -f objects.yaml -o yaml  and the pod that they make

A live object is KIND/NAME, or NAME for a pod. It is read with the rights of who
asks, through the kubeconfig; what these rights do not reach is told, and what
follows from it. The runtime's settings are read from the operator's Deployment
in --operator-namespace, unless a flag --runtime-* is given.

Of files the Pods are explained, and the pods that templates of Deployment,
StatefulSet, DaemonSet, ReplicaSet, Job and CronJob make; by the Namespaces,
VisionPolicies, VisionProviders, LimitRanges and Secrets among them. Objects
without a namespace belong to --namespace. A Secret that they do not hold is not
judged. What the API server fills in before it asks, such as the defaults of a
LimitRange for the pod's own containers, is not known.

The first check, Webhook, is whether admission is asked at all: by the cluster's
webhook configuration, and by the namespaces that it and the operator leave out.
The outcome of a check is
  Passed   nothing stands in the way
  Noted    the pod is served, and its author should know something
  Failed   something is wrong; the policy's admission.mode says what follows
  Ended    the runtime is not asked for here
  NotMade  a check before it ended the chain

What admission would do with the pod if it were created now is
  Injected        it gets the runtime
  CreatedWithout  it is created without the runtime
  Refused         it is not created
  NotAskedFor     nobody asked for the runtime: it is created as it is
  Unknown         something that decides about it could not be read

A pod of the cluster besides has a state
  Current   it has the runtime that it would get now
  Outdated  it has another one; delete it so that it is made again
  Missing   it would get the runtime now, and has none; likewise
  Leftover  it has the runtime, and would not get it now
  Without   it has no runtime, and would get none
  Unknown   what it would get depends on what could not be read

With -o json an object is printed whose key pods is a list, each of it with kind,
namespace, name, policy, mode, checks, admission, refusal, warnings, now and
unread. With -o yaml the pods that would be injected are printed as they would be,
and the text goes to standard error.

The exit code is
  0  when every pod is or would be injected, or nobody asked for the runtime
  1  when one is or would be without the runtime, when that is not known, or when
     something could not be read
  2  when the command line cannot work

Usage:
  kubectl vision explain KIND/NAME... [flags]
  kubectl vision explain -f FILE... [flags]

Flags:
`

// explainOptions are explain's arguments and flags.
type explainOptions struct {
	references        []reference
	files             []string
	namespace         string
	operatorNamespace string
	kubeconfig        string
	context           string
	output            string
	operator          operatorFlags
	// operatorGiven says that a flag tells the runtime's settings.
	operatorGiven bool
}

func parseExplain(args []string, stdout io.Writer) (explainOptions, error) {
	var o explainOptions
	flags := pflag.NewFlagSet("explain", pflag.ContinueOnError)
	flags.SortFlags = false
	flags.StringArrayVarP(&o.files, "filename", "f", nil, "`FILE`, directory, or - for standard input (repeatable)")
	flags.StringVarP(&o.namespace, "namespace", "n", "", "`NAMESPACE` of the objects; default: the kubeconfig's, or \"default\" for files")
	flags.StringVar(&o.operatorNamespace, "operator-namespace", "vision-system", "`NAMESPACE` of the operator, where baselines may live")
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "`FILE` that says how to reach the cluster; default: as kubectl")
	flags.StringVar(&o.context, "context", "", "`CONTEXT` of the kubeconfig; default: the current one")
	flags.StringVarP(&o.output, "output", "o", "text", "`FORMAT` to print: text, json or yaml")
	o.operator.addTo(flags)
	flags.Usage = func() { fmt.Fprint(stdout, explainHelp, flags.FlagUsages()) }
	if err := flags.Parse(args); err != nil {
		if err == pflag.ErrHelp { //nolint:errorlint // pflag returns it bare
			return o, err
		}
		return o, &usageError{problem: err.Error()}
	}
	flags.Visit(func(f *pflag.Flag) {
		o.operatorGiven = o.operatorGiven || len(f.Name) > len(runtimeFlagPrefix) && f.Name[:len(runtimeFlagPrefix)] == runtimeFlagPrefix
	})
	return o, o.check(flags.Args())
}

// check says why options cannot work together.
func (o *explainOptions) check(args []string) error {
	switch {
	case len(args) == 0 && len(o.files) == 0:
		return &usageError{problem: "nothing is named; name a live object as KIND/NAME, or files with --filename"}
	case len(args) > 0 && len(o.files) > 0:
		return &usageError{problem: fmt.Sprintf("%q is a live object and --filename names files; give one of them", args[0])}
	case len(o.files) > 0 && (o.kubeconfig != "" || o.context != ""):
		return &usageError{problem: "--filename is explained without a cluster; --kubeconfig and --context say how to reach one"}
	case o.output != "text" && o.output != "json" && o.output != "yaml":
		return &usageError{problem: fmt.Sprintf("--output is %q; the outputs are text, json and yaml", o.output)}
	case o.operatorNamespace == "":
		return &usageError{problem: "--operator-namespace is empty; name the namespace of the operator"}
	}
	for _, arg := range args {
		ref, err := parseReference(arg)
		if err != nil {
			return err
		}
		o.references = append(o.references, ref)
	}
	return o.operator.complete()
}

// runExplain is the command explain.
func runExplain(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) error {
	options, err := parseExplain(args, stdout)
	switch {
	case errors.Is(err, pflag.ErrHelp):
		return nil
	case err != nil:
		return err
	}
	var asked *question
	if len(options.files) > 0 {
		asked, err = askFiles(&options, stdin, stderr)
	} else {
		asked, err = askCluster(ctx, &options)
	}
	if err != nil {
		return err
	}
	var told []account
	for i := range asked.subjects {
		e, err := asked.explain(ctx, &asked.subjects[i])
		if err != nil {
			return fmt.Errorf("explaining %s %s/%s: %w", asked.subjects[i].kind, asked.subjects[i].namespace(), asked.subjects[i].name, err)
		}
		told = append(told, e)
	}
	if err := printAccounts(options.output, told, stdout, stderr); err != nil {
		return fmt.Errorf("printing: %w", err)
	}
	return shortfallOf(told)
}
