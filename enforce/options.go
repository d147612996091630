package enforce

import (
	"slices"

	"github.com/zsbx/zsbx/enforce/internal/protect"
)

// Options are choices of the caller that no policy makes.
type Options struct {
	// Accepted are gaps by name, of which these are left open where they could be
	// closed: GapProtect, GapIPC, GapTerminals; GapMetadata if it alone would take a
	// mount namespace, GapOwnFiles if a writable tree would be taken apart for it.
	Accepted []string

	// Protect are files and directories of the caller that the command must
	// never change, absolute and clean: the policy's own files, the trust
	// store, the records of sessions. They should exist.
	Protect []string

	// Watch are files and directories of the caller that can't be held. What
	// became of them is told when the command has ended.
	Watch []string

	// Repository is the root of the repository around the working directory,
	// "" for none. Where it lies in a writable tree, it is protected like one
	// near the top, however deep it is.
	Repository string

	// Hide are directories of Protect that the command has no reason to look
	// into either, such as the records of other sessions. They are covered
	// where there is a mount namespace, unless the policy names one of them,
	// or something in it; elsewhere they can be read as the policy has it.
	Hide []string

	// Explain has what the command is refused recorded: see Plan.Refusals. The
	// command has to have a keeper, and whoever starts it answers its calls.
	Explain bool

	// Model is a plan whose refusals are recorded too, though this one allows them.
	Model *Plan

	// NoLimits says why the memory, processes and processors of the policy's
	// limits can't be bounded, or "": package track finds out.
	NoLimits string
}

func (o *Options) accepts(gap string) bool { return slices.Contains(o.Accepted, gap) }

// protectRequest is what the caller wants protected.
func (o *Options) protectRequest() protect.Request {
	return protect.Request{Self: o.Protect, Watch: o.Watch, Users: !o.accepts(GapProtect), Repository: o.Repository}
}
