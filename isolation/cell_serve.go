// SPDX-License-Identifier: Apache-2.0

package isolation

import (
	"crypto/rand"
	"errors"
	"net/http"
	"time"

	"github.com/drover-agents/drover/advice"
)

// serveHeaderTime bounds how long a handler's listener waits for the header of a request.
const serveHeaderTime = 30 * time.Second

// Serve lets the program reach a handler of the host's, such as one for hooks or an MCP server, at a listener inside of
// the cell, until the cell is closed. It must be called before the program is started.
//
// The URL has no slash at its end, and a secret in its path, which the handler does not see: at levels without a network
// of the cell's own, other programs of the machine reach the listener but not the handler. The program has the secret.
// What it sends is the agent's, and to be trusted no more.
func (c *Cell) Serve(h http.Handler) (url string, err error) {
	if !c.begin() {
		return "", errClosed
	}
	defer c.spawning.Done()
	c.listening.Lock()
	defer c.listening.Unlock()
	if c.started {
		return "", advice.Wrap(errors.New("isolation: Serve was called after the program was started"), "call it right after Open")
	}
	path := "/" + rand.Text()
	server := &http.Server{Handler: http.StripPrefix(path, h), ReadHeaderTimeout: serveHeaderTime}
	c.onClose(server.Close)
	base, err := c.isolator.listen(server.Serve)
	if err != nil {
		return "", err
	}
	return base + path, nil
}
