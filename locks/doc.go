// Package locks says who may work on what, now. A lock has a path in a tree and one of four
// modes; a Manager grants all the locks of one operation in one call.
//
// # What it promises, and what not
//
// Locks order work and save waste. They never make a commit correct: that is the store's conditional
// write. A lock may be lost at any moment, and the manager GrantAll, which excludes nobody, must leave every
// result right; it may only cost more lost races. Hence readers take no locks, and a commit of one table takes none.
//
// # The tree
//
//	/{warehouse}                  level 1: a warehouse
//	/{warehouse}/{ns}/{ns}…       level 2: a namespace
//	/{warehouse}/{ns}…/#{0..f}    level 3: one of the 16 shards of a namespace's registry
//	/{warehouse}/@{pointer id}    level 4: a metadata pointer
//
// Segments are typed: names are escaped, so that a namespace called "#3" is not a shard.
//
// # The modes
//
// R reads the subtree below a path, W writes it. RA and WA stand on the ancestors of what is
// read and written, so that whoever wants a whole subtree meets those who work inside it:
//
//	held \ wanted   RA    R     WA    W
//	RA              yes   yes   yes   no
//	R               yes   yes   no    no
//	WA              yes   no    yes   no
//	W               no    no    no    no
//
// It follows that W(p) excludes every R and W on p, its ancestors and its descendants, that
// R(p) excludes every W on them, and that nothing else excludes anything.
//
// A request may ask for several modes on one path. The least mode that includes them all is taken: R
// includes RA, WA includes RA, W includes every mode. R and WA meet when an operation reads a
// subtree and writes a part of it. Neither includes the other (WA alone would let somebody else write elsewhere in the
// subtree that is being read), so W is taken. A fifth mode would admit readers of the part that is not
// written; no operation of the catalog needs it.
//
// # The order, and why there is no deadlock
//
// One Acquire takes everything that an operation needs. It takes the locks in the byte order of their paths,
// in which an ancestor comes before its descendants, and waits for one at a time. So of all operations that
// wait, the one that waits for the greatest path holds nothing that is greater, and whoever holds that path waits for
// nothing, or for something greater still, which nobody does: somebody can always go on. The argument does
// not depend on the modes. It does depend on three rules: no second Acquire while holding, no upgrade, no re-entry.
//
// A manager is fair: whoever asks for a lock that excludes somebody already waiting for it waits behind
// them, so a stream of readers does not keep a writer out.
package locks
