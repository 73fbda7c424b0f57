// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package compile

// EnvConfigMapName is the ConfigMap that stands beside the router in every
// served namespace and holds Env. Containers that fill their environment from
// sources of their own (envFrom) get the variables from it; all others get
// them written out.
const EnvConfigMapName = "vision-runtime-env"

// Names of the variables that tell an agent where its runtime is.
const (
	EnvRuntimeURL = "VISION_RUNTIME_URL"
	EnvMCPURL     = "VISION_MCP_URL"
)

// Values of the variables. The runtime listens on loopback port 8970 of the
// pod, so they are the same for every pod.
const (
	RuntimeURL = "http://127.0.0.1:8970"
	MCPURL     = RuntimeURL + "/mcp"
)

// Env returns the variables by name: the data of EnvConfigMapName, and what
// injection writes out. The caller owns the map.
func Env() map[string]string {
	return map[string]string{EnvRuntimeURL: RuntimeURL, EnvMCPURL: MCPURL}
}
