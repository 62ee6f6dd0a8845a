// SPDX-License-Identifier: Apache-2.0

// Package testuser runs tests again as an ordinary user, where they run as root. The CLI treats root
// differently, above all in bypass mode, and most people are not root.
package testuser
