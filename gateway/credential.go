// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/drover-agents/drover/advice"
)

// A Credential opens an upstream. It stays outside of the cell. It never prints its secret, however it
// is formatted. The zero value is for an upstream without authentication.
type Credential struct {
	kind   string
	secret string
	helper *keyHelper
	// listed is a header, and a word that must be in the list which it is.
	listed [2]string
}

// APIKey is a key that is sent as x-api-key, such as ANTHROPIC_API_KEY.
func APIKey(key string) Credential { return Credential{kind: "API key", secret: key} }

// BearerToken is sent as Authorization: Bearer, such as ANTHROPIC_AUTH_TOKEN.
func BearerToken(token string) Credential { return Credential{kind: "bearer token", secret: token} }

// KeyFrom is a key that get returns, such as one of a vault. It is asked for when it is needed,
// again after five minutes, and again when the upstream refuses it. It is sent both as x-api-key and
// as a bearer token, as the CLI sends the key of an apiKeyHelper.
func KeyFrom(get func(ctx context.Context) (string, error)) Credential {
	return Credential{kind: "key helper", helper: &keyHelper{get: get}}
}

// KeyCommand is [KeyFrom] a shell command that prints the key, such as the CLI's apiKeyHelper. It runs
// here, outside of any cell, with the environment of this program.
func KeyCommand(command string) Credential {
	return KeyFrom(func(ctx context.Context) (string, error) {
		ctx, cancel := context.WithTimeout(ctx, helperTimeout)
		defer cancel()
		cmd := exec.CommandContext(ctx, shell[0], append(shell[1:len(shell):len(shell)], command)...)
		cmd.WaitDelay = time.Second
		out, err := cmd.Output()
		if err != nil {
			// Neither what it printed nor the command itself: both may contain the key.
			return "", fmt.Errorf("the command that prints the key failed: %w", plainExit(err))
		}
		return string(out), nil
	})
}

// plainExit is an error without the output of the command.
func plainExit(err error) error {
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return errors.New(exit.ProcessState.String())
	}
	return errors.New("it could not be started")
}

const (
	helperTimeout = 30 * time.Second
	helperKeeps   = 5 * time.Minute
)

func (c Credential) isZero() bool { return c.secret == "" && c.helper == nil }

// String returns the kind of the credential, without its secret.
func (c Credential) String() string {
	if c.isZero() {
		return "no credential"
	}
	return c.kind + " (redacted)"
}

// GoString is String.
func (c Credential) GoString() string { return c.String() }

// Format writes String for every verb.
func (c Credential) Format(f fmt.State, _ rune) { fmt.Fprint(f, c.String()) }

// LogValue is String.
func (c Credential) LogValue() slog.Value { return slog.StringValue(c.String()) }

// MarshalText is String: a credential cannot be written down.
func (c Credential) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

func (c Credential) apply(ctx context.Context, h http.Header) error {
	switch {
	case c.helper != nil:
		key, err := c.helper.key(ctx)
		if err != nil {
			return err
		}
		h.Set("X-Api-Key", key)
		h.Set("Authorization", "Bearer "+key)
	case c.secret == "":
	case c.kind == "API key":
		h.Set("X-Api-Key", c.secret)
	default:
		h.Set("Authorization", "Bearer "+c.secret)
		if c.listed[0] != "" {
			addToList(h, c.listed[0], c.listed[1])
		}
	}
	return nil
}

// renew forgets a key that was refused, and reports whether there may be a better one.
func (c Credential) renew(h http.Header) bool {
	return c.helper != nil && c.helper.forget(h.Get("X-Api-Key"))
}

func addToList(h http.Header, name, word string) {
	all := strings.Join(h.Values(name), ",")
	for have := range strings.SplitSeq(all, ",") {
		if strings.TrimSpace(have) == word {
			return
		}
	}
	if all != "" {
		all += ","
	}
	h.Set(name, all+word)
}

type keyHelper struct {
	get func(ctx context.Context) (string, error)

	mu   sync.Mutex // also while the helper runs, so that it runs once for all waiting calls
	last string
	at   time.Time
}

func (k *keyHelper) key(ctx context.Context) (string, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.last != "" && time.Since(k.at) < helperKeeps {
		return k.last, nil
	}
	key, err := k.get(ctx)
	if err != nil {
		return "", advice.Wrap(fmt.Errorf("gateway: no key: %w", err), "run the helper by hand and see that it prints a key")
	}
	if key = strings.TrimSpace(key); key == "" || strings.ContainsAny(key, "\r\n\x00") {
		return "", advice.Wrap(errors.New("gateway: no key: the helper gave none, or more than one line"), "let it print the key and nothing else")
	}
	k.last, k.at = key, time.Now()
	return key, nil
}

// forget drops a key, unless another call has renewed it already.
func (k *keyHelper) forget(key string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.last == key {
		k.last = ""
	}
	return true
}
