package jobs

import "time"

// The checks, for tests that switch them off.
const (
	CheckHash    = checkHash
	CheckTime    = checkTime
	CheckRecord  = checkRecord
	CheckPaused  = checkPaused
	CheckHeld    = checkHeld
	CheckNew     = checkNew
	CheckNamed   = checkNamed
	CheckOwn     = checkOwn
	CheckDropped = checkDropped
	CheckFile    = checkFile
	CheckOldest  = checkOldest
	CheckAge     = checkAge
	CheckOwner   = checkOwner
	CheckShare   = checkShare
	CheckBack    = checkBack
	CheckUUID    = checkUUID
	CheckCount   = checkCount
	CheckYoung   = checkYoung
	CheckLook    = checkLookLike
	CheckBefore  = checkBefore
	CheckForeign = checkForeign
)

// Skip switches a check off.
func (j *Jobs) Skip(check string) { j.skip = map[string]bool{check: true} }

// FindMost bounds how many leftovers are found.
func (s *LeftoverSettings) FindMost(files int) { s.most = files }

// LookFor bounds how old the look before a deletion may be.
func (j *Jobs) LookFor(limit time.Duration) { j.lookMax = limit }
