// SPDX-License-Identifier: Apache-2.0

// Command site writes the documentation of the checkout as static HTML into dist/docs: README.md, the other pages beside
// it and those of docs. A link that leads nowhere, inside of a page too, is an error. The pages load nothing from
// elsewhere, work without a server, and have a search whose index is a file beside them.
package main
