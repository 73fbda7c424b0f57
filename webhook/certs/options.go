// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"fmt"
	"time"
)

// Defaults of Options; the names are those of config/webhook.
const (
	DefaultSecret        = "vision-operator-ca"
	DefaultService       = "vision-operator-webhook"
	DefaultConfiguration = "vision-operator"
	// DefaultCALifetime leaves four months in which leaves of the old CA are still trusted.
	DefaultCALifetime = 365 * 24 * time.Hour
	// DefaultLeafLifetime is short, since leaves are only ever in memory.
	DefaultLeafLifetime = 7 * 24 * time.Hour
	// DefaultOverlap is far more than an API server takes to hear of a change.
	DefaultOverlap  = 5 * time.Minute
	DefaultInterval = time.Minute
)

// Options say where things are. Only Namespace must be set, and not even it with Directory.
type Options struct {
	// Directory holds tls.crt and tls.key of the administrator's own, or of
	// cert-manager's; they are reloaded when they change. Empty means our own CA.
	Directory string
	// Namespace is the operator's.
	Namespace string
	// Secret holds the CA. Default DefaultSecret.
	Secret string
	// Service is the Service in front of the webhook server. Default DefaultService.
	Service string
	// MutatingConfiguration and ValidatingConfiguration are ours. Default DefaultConfiguration.
	MutatingConfiguration, ValidatingConfiguration string
	// Hosts are further DNS names and IP addresses in the serving certificate;
	// those of a clientConfig.url in our configurations are found by themselves.
	Hosts []string
	// CALifetime and LeafLifetime are how long what is made from now on holds. Both
	// kinds are renewed after two thirds of theirs. A CA that was made to live
	// longer is renewed as if it had been made with this lifetime. Defaults
	// DefaultCALifetime and DefaultLeafLifetime.
	CALifetime, LeafLifetime time.Duration
	// Overlap is how long a new CA is in the caBundle before this replica serves a
	// leaf of it, so that every API server has heard of it. Default DefaultOverlap.
	Overlap time.Duration
	// Interval is how often everything is checked when no change is heard of. Default DefaultInterval.
	Interval time.Duration
	// Now is the clock. Default time.Now.
	Now func() time.Time
}

// LifetimeError is lifetimes with which there would be moments without trust.
type LifetimeError struct{ Problem string }

// Error names the problem.
func (e *LifetimeError) Error() string { return "choosing the lifetimes of certificates: " + e.Problem }

// Check finds lifetimes with which certificates could not be renewed in time; its
// error is a *LifetimeError. What is left zero has its default.
func (o Options) Check() error {
	o.setDefaults()
	third := (o.CALifetime / 3).Round(time.Second)
	switch {
	case o.Overlap < 0 || o.Interval < 0:
		return &LifetimeError{fmt.Sprintf("neither the overlap, %s, nor the time between two looks, %s, can be negative", o.Overlap, o.Interval)}
	case o.LeafLifetime >= o.CALifetime:
		return &LifetimeError{fmt.Sprintf("a serving certificate of %s must end before its CA of %s", o.LeafLifetime, o.CALifetime)}
	case o.Overlap+o.Interval >= o.CALifetime/3:
		return &LifetimeError{fmt.Sprintf("a CA of %s has a successor for its last third, %s; that must be more than the %s for which it goes on serving and the %s between two looks",
			o.CALifetime, third, o.Overlap, o.Interval)}
	case o.Interval >= o.LeafLifetime/3:
		return &LifetimeError{fmt.Sprintf("a serving certificate of %s is renewed in its last third, which must be more than the %s between two looks", o.LeafLifetime, o.Interval)}
	}
	return nil
}

func (o *Options) setDefaults() {
	for field, value := range map[*string]string{
		&o.Secret: DefaultSecret, &o.Service: DefaultService,
		&o.MutatingConfiguration: DefaultConfiguration, &o.ValidatingConfiguration: DefaultConfiguration,
	} {
		if *field == "" {
			*field = value
		}
	}
	for field, value := range map[*time.Duration]time.Duration{
		&o.CALifetime: DefaultCALifetime, &o.LeafLifetime: DefaultLeafLifetime, &o.Overlap: DefaultOverlap, &o.Interval: DefaultInterval,
	} {
		if *field == 0 {
			*field = value
		}
	}
	if o.Now == nil {
		o.Now = time.Now
	}
}
