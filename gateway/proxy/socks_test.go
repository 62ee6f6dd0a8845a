// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"context"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"
)

func TestSOCKS_Tunnels(t *testing.T) {
	granted5, granted4 := "\x05\x00\x00\x01\x00\x00\x00\x00\x00\x00", "\x00\x5a\x00\x00\x00\x00\x00\x00"
	tests := []struct {
		name, greeting, chosen, request, reply, dialled string
	}{
		{"5 with a name", "\x05\x01\x00", "\x05\x00", socks5Request(1, "example.com", 443), granted5, "93.184.216.34:443"},
		{"5 with an address", "\x05\x02\x02\x00", "\x05\x00", "\x05\x01\x00\x01\x5d\xb8\xd8\x22\x01\xbb", granted5, "93.184.216.34:443"},
		{
			"5 with an IPv6 address", "\x05\x01\x00", "\x05\x00",
			"\x05\x01\x00\x04\x26\x06\x28\x00\x02\x20\x00\x01\x00\x00\x00\x00\x00\x00\x00\x01\x01\xbb", granted5, "[2606:2800:220:1::1]:443",
		},
		{"4", "", "", "\x04\x01\x01\xbb\x5d\xb8\xd8\x22me\x00", granted4, "93.184.216.34:443"},
		{"4a", "", "", "\x04\x01\x01\xbb\x00\x00\x00\x07\x00example.com\x00", granted4, "93.184.216.34:443"},
	}
	backend := echo(t)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t, Policy{Domains: []string{"*"}}, backend, nil)
			// What follows the request at once belongs to the tunnel.
			c := w.dial().send(tt.greeting).expect(tt.chosen).send(tt.request + "early").expect(tt.reply + "early").send("x").expect("x")
			c.Conn.(*net.TCPConn).CloseWrite()
			if rest, err := io.ReadAll(c); len(rest) > 0 || err != nil {
				t.Errorf("got %q, %v after the end", rest, err)
			}
			got := w.next()
			if got.Verdict != Allowed || got.Address != tt.dialled || got.BytesUp != 6 || got.BytesDown != 6 {
				t.Errorf("got %+v", got)
			}
			w.quiet()
		})
	}
}

func TestSOCKS_Refusals(t *testing.T) {
	reply5 := func(code byte) string { return string(socks5Reply(code)) }
	const refused4 = "\x00\x5b\x00\x00\x00\x00\x00\x00"
	tests := []struct {
		name, sent, want string
		reported         Verdict // empty: nothing is reported
	}{
		{"5 denied", "\x05\x01\x00" + socks5Request(1, "other.example", 443), "\x05\x00" + reply5(2), Denied},
		{"5 BIND", "\x05\x01\x00" + socks5Request(2, "example.com", 443), "\x05\x00" + reply5(7), Denied},
		{"5 UDP ASSOCIATE", "\x05\x01\x00" + socks5Request(3, "0.0.0.0", 0), "\x05\x00" + reply5(7), Denied},
		{"5 unknown command", "\x05\x01\x00" + socks5Request(9, "example.com", 443), "\x05\x00" + reply5(7), Denied},
		{"5 unknown kind of address", "\x05\x01\x00\x05\x01\x00\x02aaaa\x00\x50", "\x05\x00" + reply5(8), ""},
		{"5 mapped loopback", "\x05\x01\x00\x05\x01\x00\x04\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\xff\xff\x7f\x00\x00\x01\x00\x50", "\x05\x00" + reply5(2), Denied},
		{"5 brackets", "\x05\x01\x00" + socks5Request(1, "[::1]", 80), "\x05\x00" + reply5(2), Denied},
		{"5 empty name", "\x05\x01\x00" + socks5Request(1, "", 80), "\x05\x00" + reply5(2), Denied},
		{"5 port 0", "\x05\x01\x00" + socks5Request(1, "example.com", 0), "\x05\x00" + reply5(2), Denied},
		{"5 not found", "\x05\x01\x00" + socks5Request(1, "gone.example.com", 443), "\x05\x00" + reply5(4), Failed},
		{"5 refused by the host", "\x05\x01\x00" + socks5Request(1, "example.com", 443), "\x05\x00" + reply5(5), Failed},
		{"5 only with a password", "\x05\x01\x02", "\x05\xff", ""},
		{"5 no methods", "\x05\x00", "\x05\xff", ""},
		{"5 then 4", "\x05\x01\x00\x04\x01\x00\x01", "\x05\x00", ""},
		{"4 denied", "\x04\x01\x01\xbb\x00\x00\x00\x01\x00other.example\x00", refused4, Denied},
		{"4 loopback", "\x04\x01\x01\xbb\x7f\x00\x00\x01\x00", refused4, Denied},
		{"4 unspecified", "\x04\x01\x01\xbb\x00\x00\x00\x00\x00", refused4, Denied},
		{"4 BIND", "\x04\x02\x01\xbb\x00\x00\x00\x01\x00example.com\x00", refused4, Denied},
		{"4 refused by the host", "\x04\x01\x01\xbb\x00\x00\x00\x01\x00example.com\x00", refused4, Failed},
		{"4 endless user", "\x04\x01\x01\xbb\x00\x00\x00\x01" + strings.Repeat("x", 300), "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t, Policy{Domains: []string{"example.com", "*.example.com"}}, nil, func(o *Options) {
				o.Dial = func(context.Context, string, string) (net.Conn, error) { return nil, syscall.ECONNREFUSED }
			})
			c := w.dial().send(tt.sent).expect(tt.want)
			if tt.reported != "" {
				if got := w.next(); got.Verdict != tt.reported || got.Reason == "" {
					t.Errorf("got %+v, want it %s", got, tt.reported)
				}
			}
			c.Conn.(*net.TCPConn).CloseWrite()
			if rest, _ := io.ReadAll(c); len(rest) > 0 {
				t.Errorf("got %q behind the reply", rest)
			}
			w.quiet()
		})
	}
}
