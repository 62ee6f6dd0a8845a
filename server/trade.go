// SPDX-License-Identifier: Apache-2.0

package server

import (
	"net/http"
	"time"
)

type tradeRequest struct {
	Token string `json:"token"`
}

type tradeAnswer struct {
	// Secret is for the header Drover-Secret of every other request.
	Secret   string `json:"secret"`
	ReadOnly bool   `json:"readOnly"`
}

func (s *Server) serveTrade(w http.ResponseWriter, r *http.Request) error {
	if r.Header.Get("Origin") == "" {
		return problem(http.StatusForbidden, "only the page trades tokens", "send Authorization: Bearer with the token instead")
	}
	var t tradeRequest
	if err := readJSON(w, r, &t); err != nil {
		return err
	}
	earlier := ""
	if c, err := r.Cookie(cookieName(r)); err == nil {
		earlier = c.Value
	}
	b, err := s.keys.trade(t.Token, earlier)
	if err != nil {
		return err
	}
	http.SetCookie(w, &http.Cookie{Name: cookieName(r), Value: b.cookie, Path: "/", HttpOnly: true, Secure: r.TLS != nil, SameSite: http.SameSiteStrictMode})
	return writeJSON(w, http.StatusOK, tradeAnswer{b.secret, b.access == viewer})
}

// About is what a server is.
type About struct {
	Version  string `json:"version,omitzero"`
	ReadOnly bool   `json:"readOnly"`
	// Start means that runs can be started here.
	Start bool      `json:"start"`
	Now   time.Time `json:"now"`
}

func (s *Server) serveAbout(w http.ResponseWriter, r *http.Request) error {
	return writeJSON(w, http.StatusOK, About{s.o.Version, s.keys.check(r, owner) != nil, s.o.Starter != nil, time.Now()})
}
