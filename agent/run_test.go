// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover/event"
)

// pointerPayload is a payload only as a pointer, as a careless adapter may have one.
type pointerPayload struct{}

func (*pointerPayload) EventKind() event.Kind { return "x:pointer" }

func TestNormalise_PointerBecomesItsValue(t *testing.T) {
	own := &pointerPayload{}
	for _, c := range []struct{ given, want event.Payload }{
		{event.Text{Content: "a"}, event.Text{Content: "a"}},
		{&event.Text{Content: "a"}, event.Text{Content: "a"}},
		{&event.PermissionRequest{ID: "1"}, event.PermissionRequest{ID: "1"}},
		{&event.Decision{CallID: "1"}, event.Decision{CallID: "1"}},
		{&event.Extension{Kind: "x:y"}, event.Extension{Kind: "x:y"}},
		{own, own},
	} {
		e := event.Event{Payload: c.given}
		if err := normalise(&e); err != nil || e.Kind != c.want.EventKind() {
			t.Errorf("%T: kind %q and %v, want %q", c.given, e.Kind, err, c.want.EventKind())
		}
		if diff := cmp.Diff(c.want, e.Payload); diff != "" {
			t.Errorf("%T (-want +got):\n%s", c.given, diff)
		}
	}
}
