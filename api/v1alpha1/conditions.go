// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Condition types of both kinds. Each is True when all is well.
const (
	// ConditionAccepted says whether the object is valid and takes part in routers.
	//
	// False: fix what the message names; the object is left out of every router
	// meanwhile, and nothing else is disturbed. Of a baseline, the allow-list, the
	// limits and the denials hold all the same, as far as they are valid themselves.
	ConditionAccepted = "Accepted"

	// ConditionReady sums up the others for waiting: `kubectl wait --for=condition=Ready`.
	// Its reason and message are those of the first condition that is not True.
	ConditionReady = "Ready"
)

// Condition types of VisionProvider.
const (
	// ConditionCredentialsResolved says whether the Secret's key could be read
	// and looks like a key. Unknown when the operator has no access to Secrets, or
	// the provider is not accepted.
	ConditionCredentialsResolved = "CredentialsResolved"

	// ConditionReachable says whether the endpoints answer the operator. Only with
	// spec.probe. Unknown while an endpoint has not been probed, or is not.
	//
	// False: at least one does not answer; the message names it and the reason is
	// the first one's. No key is sent, so it says nothing of the key. Runtimes
	// are not told: they find out by themselves.
	ConditionReachable = "Reachable"
)

// Condition types of VisionPolicy.
const (
	// ConditionResolvedRefs says whether every referenced provider exists, is
	// accepted, permits the reference, and holds the named endpoints and models,
	// with the baselines of the namespace laid over the policy.
	ConditionResolvedRefs = "ResolvedRefs"

	// ConditionProgrammed says whether the router that the API server holds
	// carries this generation of the policy.
	ConditionProgrammed = "Programmed"

	// ConditionOverridden is True when another policy with an equal selector
	// serves the pods in place of this one; its message names the winner.
	ConditionOverridden = "Overridden"
)

// Reasons of Accepted.
const (
	// ReasonAccepted: the object is valid.
	ReasonAccepted = "Accepted"
	// ReasonInvalid: the object breaks a rule that the API server could not see.
	ReasonInvalid = "Invalid"
	// ReasonNotBaselineNamespace: namespaceSelector is set outside the operator's own namespace.
	ReasonNotBaselineNamespace = "NotBaselineNamespace"
)

// Reasons of CredentialsResolved.
const (
	// ReasonResolved: the key is there and usable, or every reference resolved.
	ReasonResolved = "Resolved"
	// ReasonNoCredentials: the provider declares that it needs none.
	ReasonNoCredentials = "NoCredentials"
	// ReasonConsumerSecret: the key is in each consuming pod's namespace and is read there.
	ReasonConsumerSecret = "ConsumerSecret"
	// ReasonSecretNotFound: there is no Secret of that name.
	ReasonSecretNotFound = "SecretNotFound"
	// ReasonSecretKeyNotFound: the Secret has no such key.
	ReasonSecretKeyNotFound = "SecretKeyNotFound"
	// ReasonSecretKeyEmpty: the key's value is empty.
	ReasonSecretKeyEmpty = "SecretKeyEmpty"
	// ReasonSecretKeyMalformed: the value has a stray newline, white space or quotes
	// around it, a space or a character within it that no key has, or over 64 KiB.
	ReasonSecretKeyMalformed = "SecretKeyMalformed"
	// ReasonSecretAccessDenied: the operator may not read the Secret.
	ReasonSecretAccessDenied = "SecretAccessDenied"
)

// Reasons of Reachable. NotAccepted is one as well.
const (
	// ReasonReachable: every endpoint gave an HTTP answer below 500.
	ReasonReachable = "Reachable"
	// ReasonNotProbed, with status Unknown: the first probe is still to come.
	ReasonNotProbed = "NotProbed"
	// ReasonAddressNotAllowed, with status Unknown: the endpoint is neither public nor
	// a Service of the provider's own namespace, and so is never probed. Runtimes may
	// reach it all the same; leave spec.probe away.
	ReasonAddressNotAllowed = "AddressNotAllowed"
	// ReasonDNSFailed: no address was found for the endpoint's host.
	ReasonDNSFailed = "DNSFailed"
	// ReasonConnectionFailed: the endpoint refused or broke the connection, or gave no HTTP answer.
	ReasonConnectionFailed = "ConnectionFailed"
	// ReasonTLSFailed: the endpoint's certificate is not trusted, or no TLS 1.2 or later was agreed on.
	ReasonTLSFailed = "TLSFailed"
	// ReasonTimeout: the endpoint did not answer within 5 seconds.
	ReasonTimeout = "Timeout"
	// ReasonServerError: the endpoint answered with a status of 500 or above.
	ReasonServerError = "ServerError"
)

// Reasons of ResolvedRefs.
const (
	// ReasonProviderNotFound: a referenced provider does not exist.
	ReasonProviderNotFound = "ProviderNotFound"
	// ReasonProviderNotAccepted: a referenced provider has Accepted=False.
	ReasonProviderNotAccepted = "ProviderNotAccepted"
	// ReasonRefNotPermitted: a provider of another namespace does not permit the
	// reference, or does not exist; which of the two is not told.
	ReasonRefNotPermitted = "RefNotPermitted"
	// ReasonNoProviders: the policy's namespace holds no provider that it could use.
	ReasonNoProviders = "NoProviders"
	// ReasonRouteNotFound: defaultModel or a fallback names an endpoint or model that no provider declares.
	// Correct the route, declare the model, or let the provider discover its models.
	ReasonRouteNotFound = "RouteNotFound"
	// ReasonCredentialNotShared: a provider of another namespace permits the
	// reference, and its key stays in its own namespace, where no pod of another
	// one can have it. Give the provider secretRef.from: Consumer.
	ReasonCredentialNotShared = "CredentialNotShared"
	// ReasonNoUsableRoute: after allow-lists and capabilities no route is left; the
	// message names the policy and the baselines whose allow-lists refuse.
	ReasonNoUsableRoute = "NoUsableRoute"
	// ReasonNoMediaType: the lists of limits.image.mediaTypes of the policy and its
	// baselines have no type in common, so that no image is accepted.
	ReasonNoMediaType = "NoMediaType"
	// ReasonFallbackNotUsable, with status True: a fallback is known and cannot
	// serve; the message says why. The policy is in force, and the fallback is
	// passed over.
	ReasonFallbackNotUsable = "FallbackNotUsable"
)

// Reasons of Programmed.
const (
	// ReasonProgrammed: the published router carries this generation.
	ReasonProgrammed = "Programmed"
	// ReasonPartiallyProgrammed: it does, but for fields whose behaviour this
	// build does not have; the message names them.
	ReasonPartiallyProgrammed = "PartiallyProgrammed"
	// ReasonRouterTooLarge: the document would exceed 800 KiB; the previous one stays.
	ReasonRouterTooLarge = "RouterTooLarge"
	// ReasonConflict: a ConfigMap of the router's name exists and is not ours.
	ReasonConflict = "Conflict"
	// ReasonPending: the router has not been published yet.
	ReasonPending = "Pending"
	// ReasonNotAccepted: the policy is not accepted, so there is nothing to program.
	ReasonNotAccepted = "NotAccepted"
)

// Reasons of Overridden.
const (
	// ReasonEqualSelector: an older policy, or one before it by name, selects the
	// same pods, or an older baseline the same pods of the same namespaces.
	ReasonEqualSelector = "EqualSelector"
)

// Reasons of Ready.
const (
	// ReasonReady: every other condition is True.
	ReasonReady = "Ready"
	// ReasonCredentialsNotResolved, of a policy: the router carries it, and the key
	// of its default route's provider cannot be used; the message says why. The
	// provider's CredentialsResolved tells more.
	ReasonCredentialsNotResolved = "CredentialsNotResolved"
)
