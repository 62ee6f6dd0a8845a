// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"
)

func TestKeyFrom_KeepsTheKeyForFiveMinutes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		c := KeyFrom(func(context.Context) (string, error) {
			asked++
			return fmt.Sprintf("key-%d", asked), nil
		})
		for _, step := range []struct {
			after time.Duration
			want  string
		}{{0, "key-1"}, {4 * time.Minute, "key-1"}, {time.Minute, "key-2"}, {4 * time.Minute, "key-2"}} {
			time.Sleep(step.after)
			h := http.Header{}
			if err := c.apply(t.Context(), h); err != nil || h.Get("X-Api-Key") != step.want {
				t.Errorf("got %v, %v, want %s", h, err, step.want)
			}
		}
	})
}
