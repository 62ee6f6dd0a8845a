// SPDX-License-Identifier: Apache-2.0

package event

import (
	"encoding/json"
	"fmt"
)

// A Verdict is what was decided about a tool call. The zero value denies.
type Verdict uint8

// The verdicts, the strictest first.
const (
	Deny Verdict = iota
	Ask
	Allow
)

// String gives "deny", "ask" or "allow". Any other value denies.
func (v Verdict) String() string {
	switch v {
	case Ask:
		return "ask"
	case Allow:
		return "allow"
	}
	return "deny"
}

// MarshalText implements encoding.TextMarshaler.
func (v Verdict) MarshalText() ([]byte, error) { return []byte(v.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (v *Verdict) UnmarshalText(text []byte) error {
	switch string(text) {
	case "deny":
		*v = Deny
	case "ask":
		*v = Ask
	case "allow":
		*v = Allow
	default:
		return fmt.Errorf("event: %q is no verdict; it is deny, ask or allow", text)
	}
	return nil
}

// A Decision is what was decided about one tool call, and why.
type Decision struct {
	// CallID and Tool are the call's; Tool is the name as the caller wrote it.
	CallID CallID `json:"toolUseId,omitzero"`
	Tool   string `json:"toolName,omitzero"`

	Verdict Verdict `json:"verdict"`
	// Asked is set if an approver was asked.
	Asked bool `json:"asked,omitzero"`
	// Remembered is set if an earlier answer was used.
	Remembered bool `json:"remembered,omitzero"`
	// Reason is what the model reads of a denial. An allowed call needs none.
	Reason string `json:"reason,omitzero"`
	// Policy is who decided: "limits", "risk", "approver".
	Policy string `json:"policy,omitzero"`
	// Input replaces the input of an allowed call. Nil leaves it as it is.
	Input json.RawMessage `json:"input,omitempty"`
	// Chain has the verdicts that led to this one, in the order in which they were given. A gate engine sets it.
	Chain []PolicyVerdict `json:"chain,omitempty"`

	// Policies return decisions by value, and the processor stalls at each copy whose size is no multiple of 16 bytes.
	_ uint64 `json:"-"`
}

// A PolicyVerdict is what one policy decided about a tool call. The approver, and rules that decide where all policies
// abstain, count as policies.
type PolicyVerdict struct {
	Policy string `json:"policy"`
	// Verdict is nil if the policy was asked and abstained.
	Verdict *Verdict `json:"verdict,omitzero"`
	Reason  string   `json:"reason,omitzero"`
	// Again is set if the policy judged an input that another policy or the approver has written.
	Again bool `json:"again,omitzero"`
	// Tool is the tool that the policy judged, where a call names another tool than the one that would run.
	Tool string `json:"toolName,omitzero"`
}

// EventKind implements [Payload].
func (Decision) EventKind() Kind { return KindDecision }

// A PermissionRequest asks an approver whether a tool call may run.
type PermissionRequest struct {
	ID   CallID `json:"toolUseId"`
	Name string `json:"toolName"`
	// Input is a JSON object. Nil is written as {} in an event.
	Input json.RawMessage `json:"input"`
	// Reason is why the approver is asked.
	Reason string `json:"reason,omitzero"`
}

// EventKind implements [Payload].
func (PermissionRequest) EventKind() Kind { return KindPermissionRequest }

func (r PermissionRequest) wireForm() any {
	r.Input = objectOr(r.Input)
	return r
}
