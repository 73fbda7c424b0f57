// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"log/slog"
	"net"
	"path/filepath"
	"regexp"
	"strconv"

	"github.com/spf13/pflag"
)

// config is what both ways to run the tool need.
type config struct {
	router     string   // directory that holds router.json, or the file
	profile    string   // "policy/<name>" or "baseline/<name>"
	secrets    string   // directory of keys at <namespace>/<provider>; empty when there are none
	cache      string   // directory for what may outlive the process; empty when there is none
	inFlight   int64    // most bytes of images, and of model requests, in memory at once; 0 leaves it to the container's limit
	persisted  int64    // most bytes of observations in the cache directory; 0 leaves it to the policy
	workspaces []string // absolute directories that hold images
	logLevel   slog.Level
}

// serveConfig adds the listeners. Port 0 lets the system choose.
type serveConfig struct {
	config
	listen       string
	healthListen string
	allowedHosts []string // names by which others reach the listener for agents
	noProxy      bool     // no model proxy is served
}

// serveHelp and mcpHelp stand before the flags of their command.
const (
	serveHelp = `Serve the ViewImage tool over HTTP and MCP at --listen, which GET /openapi.json
describes, and there the model proxy, where the policy has one, below /openai/v1,
/anthropic and /gemini; probes and metrics at --health-listen.

  vision-runtime serve --router router.json --profile policy/default --secrets keys --workspace /workspace

Usage:
  vision-runtime serve --router DIR --profile ID [flags]

Flags:
`
	mcpHelp = `Serve the ViewImage tool over MCP on standard input and output, to the one
client that started the command. The log goes to standard error.

  vision-runtime mcp --router router.json --profile policy/default --secrets keys --workspace /workspace

Usage:
  vision-runtime mcp --router DIR --profile ID [flags]

Flags:
`
)

// minInFlightBytes is the least that makes sense: 1 MiB, four small images.
const minInFlightBytes = 1 << 20

// usageError is a command line that cannot work.
type usageError struct{ problem string }

// Error says what is wrong with the command line.
func (e *usageError) Error() string { return "reading command line: " + e.problem }

// profileID has the form of router.Profile.ID: a kind and an object's name.
var profileID = regexp.MustCompile(`^(policy|baseline)/[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`)

// hostName is a DNS name as it stands in a Host header.
var hostName = regexp.MustCompile(`^[A-Za-z0-9]([-A-Za-z0-9.]{0,251}[A-Za-z0-9])?$`)

func parseServe(args []string, stdout io.Writer) (serveConfig, error) {
	var cfg serveConfig
	flags := newFlags("serve", &cfg.config)
	flags.StringVar(&cfg.listen, "listen", "127.0.0.1:8970", "`ADDRESS` for agents, HOST:PORT; port 0 lets the system choose")
	flags.StringVar(&cfg.healthListen, "health-listen", ":8971", "`ADDRESS` for probes and metrics, HOST:PORT; port 0 lets the system choose")
	flags.StringSliceVar(&cfg.allowedHosts, "allowed-hosts", nil, "`NAMES` by which others reach the listener for agents, such as a Service's, without ports; every request must name one of them, or loopback, as its Host")
	flags.BoolVar(&cfg.noProxy, "no-proxy", false, "serve no model proxy, whatever the policy says: only reviews, looks and uploads")
	if err := parse(flags, serveHelp, args, &cfg.config, stdout); err != nil {
		return serveConfig{}, err
	}
	for _, host := range cfg.allowedHosts {
		if !hostName.MatchString(host) && net.ParseIP(host) == nil {
			return serveConfig{}, wrongFlag("allowed-hosts", host, "want a name or an IP address, without a port")
		}
	}
	for name, address := range map[string]string{"listen": cfg.listen, "health-listen": cfg.healthListen} {
		if err := checkAddress(address); err != nil {
			return serveConfig{}, wrongFlag(name, address, err.Error())
		}
	}
	return cfg, nil
}

func parseMCP(args []string, stdout io.Writer) (config, error) {
	var cfg config
	return cfg, parse(newFlags("mcp", &cfg), mcpHelp, args, &cfg, stdout)
}

// newFlags declares the flags that both commands have.
func newFlags(command string, cfg *config) *pflag.FlagSet {
	flags := pflag.NewFlagSet("vision-runtime "+command, pflag.ContinueOnError)
	flags.SortFlags = false
	flags.Usage = func() {} // parse prints the help
	flags.StringVar(&cfg.router, "router", "", "`DIR` that holds router.json, as its ConfigMap is mounted, or the file itself (required)")
	flags.StringVar(&cfg.profile, "profile", "", "`ID` of the profile that governs every request: policy/NAME or baseline/NAME (required)")
	flags.StringVar(&cfg.secrets, "secrets", "", "`DIR` of the providers' keys, each at DIR/<namespace>/<provider>")
	flags.StringVar(&cfg.cache, "cache", "", "writable `DIR` for what outlives a restart: uploads, references, and observations where the policy persists them; without it there are no uploads")
	flags.Int64Var(&cfg.persisted, "max-persisted-bytes", 0, "most `BYTES` of observations in the cache directory, whatever the policy allows: what its volume holds; 0 leaves it to the policy")
	flags.Int64Var(&cfg.inFlight, "max-in-flight-bytes", 0, "most `BYTES` of images held in memory at the same time, and as many of model requests; what comes on top waits; 0 takes a third of what the container's memory limit leaves beside 64 MiB, or 64 MiB without a limit")
	flags.StringArrayVar(&cfg.workspaces, "workspace", nil, "absolute `DIR` whose images may be looked at; repeat it for more")
	flags.Var((*levelValue)(&cfg.logLevel), "log-level", "least level that is logged: debug, info, warn or error")
	return flags
}

// parse reads a command line and checks what the flags' own types do not.
func parse(flags *pflag.FlagSet, about string, args []string, cfg *config, stdout io.Writer) error {
	help := flags.BoolP("help", "h", false, "print this help")
	if err := flags.Parse(args); err != nil {
		return &usageError{problem: err.Error()}
	}
	if *help {
		fmt.Fprint(stdout, about, flags.FlagUsages())
		return pflag.ErrHelp
	}
	if flags.NArg() > 0 {
		return &usageError{problem: fmt.Sprintf("there is an argument %q that belongs to no flag", flags.Arg(0))}
	}
	if cfg.router == "" {
		return &usageError{problem: "--router is missing; name the directory that holds router.json, or the file"}
	}
	if cfg.profile == "" {
		return &usageError{problem: "--profile is missing; name the profile, such as policy/default"}
	}
	if !profileID.MatchString(cfg.profile) {
		return wrongFlag("profile", cfg.profile, "want policy/NAME or baseline/NAME")
	}
	if cfg.inFlight != 0 && cfg.inFlight < minInFlightBytes {
		return wrongFlag("max-in-flight-bytes", strconv.FormatInt(cfg.inFlight, 10), "want 0 or at least "+strconv.Itoa(minInFlightBytes))
	}
	if cfg.persisted < 0 {
		return wrongFlag("max-persisted-bytes", strconv.FormatInt(cfg.persisted, 10), "want 0 or more")
	}
	for _, dir := range cfg.workspaces {
		if !filepath.IsAbs(dir) {
			return wrongFlag("workspace", dir, "want an absolute path")
		}
	}
	return nil
}

func wrongFlag(name, value, problem string) error {
	return &usageError{problem: fmt.Sprintf("--%s %q: %s", name, value, problem)}
}

// checkAddress accepts HOST:PORT, where HOST may be empty and is never looked up.
func checkAddress(address string) error {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("want HOST:PORT")
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return fmt.Errorf("the port is not a number from 0 to 65535")
	}
	if host != "" && host != "localhost" && net.ParseIP(host) == nil {
		return fmt.Errorf("the host is neither an IP address nor localhost")
	}
	return nil
}

// levelValue is a log level as a flag.
type levelValue slog.Level

// String is the level's name in lower case.
func (l *levelValue) String() string {
	for name, level := range levels {
		if level == slog.Level(*l) {
			return name
		}
	}
	return slog.Level(*l).String()
}

// Set accepts the names of levels.
func (l *levelValue) Set(s string) error {
	level, ok := levels[s]
	if !ok {
		return fmt.Errorf("want debug, info, warn or error")
	}
	*l = levelValue(level)
	return nil
}

// Type is what the help calls the value.
func (*levelValue) Type() string { return "LEVEL" }

var levels = map[string]slog.Level{"debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError}
