// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"fmt"
	"net/url"
	"slices"

	"github.com/drover-agents/drover/guard"
)

// Remote is what a model call may have the API reach for the agent: the API has a network, whatever the agent has.
type Remote struct {
	// Tools are the tools that the API runs which may be offered, without the date in their type: "web_search".
	Tools []string
	// Host reports whether images and documents may be read from a host. Nil means from none.
	Host func(host string) bool
}

// A RemoteUse is what the API would reach for. Without Tool and URL it is only for runs without [RunOptions.Remote].
type RemoteUse struct {
	// Tool is a tool that the API runs, as [Remote.Tools] names it.
	Tool string
	// URL is where the API would read from.
	URL string
	// What is its description, as in "the request has ...".
	What string
	// Priced means that its price is counted, or zero.
	Priced bool
}

func (r *Remote) permits(u RemoteUse) bool {
	switch {
	case u.Tool != "":
		return slices.Contains(r.Tools, u.Tool)
	case u.URL != "" && r.Host != nil:
		at, err := url.Parse(u.URL)
		return err == nil && r.Host(at.Hostname())
	}
	return false
}

// checkRemote refuses what the API would reach for without the run having been given it.
func (r *Run) checkRemote(a *Request) error {
	if r.o.Remote == nil {
		return nil
	}
	for _, use := range a.Remote {
		if !r.o.Remote.permits(use) {
			return fmt.Errorf(textRemote, use.What)
		}
	}
	return nil
}

// checkPrice refuses what changes the price in a way that the table does not know, where a budget is in dollars.
func (r *Run) checkPrice(a *Request) error {
	if !r.limitsCost() {
		return nil
	}
	unknown := a.Surcharges
	for _, use := range a.Remote {
		if !use.Priced {
			unknown = append(unknown, use.What)
		}
	}
	if len(unknown) == 0 {
		return nil
	}
	return fmt.Errorf(textSurcharge, unknown[0])
}

func (r *Run) limitsCost() bool {
	return slices.ContainsFunc(r.o.Trackers, func(t *guard.Tracker) bool { return t.Budget().MaxCostUSD != 0 })
}

// affordable reports whether the cost of a model, by its canonical name, can be counted if it is limited. A
// model without a price would cost nothing, and the client of the gateway may choose the model.
func (r *Run) affordable(model string) bool {
	_, priced := r.prices.Models[model]
	return priced || !r.limitsCost()
}

func (r *Run) allowed(model string) bool {
	return r.o.Models == nil || slices.ContainsFunc(r.o.Models, func(m string) bool {
		return r.wire.canonical(m) == r.wire.canonical(model)
	})
}
