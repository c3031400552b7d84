package registrytest

import (
	"testing"

	"moorage/registry"
)

// Open returns a new, empty store for one test, which closes it. Open may register a t.Cleanup that
// removes remains of the store. Tests run in parallel.
type Open func(t *testing.T) registry.Store

// Run tests the stores that open returns against the contract of registry.Store.
func Run(t *testing.T, open Open) {
	tests := []struct {
		name string
		test func(*harness)
	}{
		{"Get/AnswersInTheOrderOfKeys", getOrder},
		{"Get/AnswersMissingKeysWithZeroRecords", getMissing},
		{"Get/AnswersAsOfOneMoment", getOneMoment},
		{"Get/ValuesNeverChange", getValuesNeverChange},
		{"Get/RefusesBadKeys", getBadKeys},
		{"Get/KeepsTablesApart", getTablesApart},
		{"Get/AnswersTheFormatRecord", getFormat},

		{"List/AnswersInByteOrder", listByteOrder},
		{"List/KeepsToPrefixAfterAndLimit", listPrefixAfterLimit},
		{"List/ShorterPageIsTheLast", listPages},
		{"List/EndsAPageWhoseValuesAreLong", listLongValues},
		{"List/AnswersWholeRecords", listWholeRecords},
		{"List/AnswersAsOfOneMoment", listOneMoment},
		{"List/RefusesBadPages", listBadPages},
		{"ListKeys/AnswersWhatListDoesWithoutValues", listKeys},

		{"Apply/PutsWhateverWasThere", applyPut},
		{"Apply/DeletesAndToleratesMissing", applyDelete},
		{"Apply/ReturnsETagsInTheOrderOfWrites", applyETags},
		{"Apply/DrawsANewETagForEachWrite", applyETagsNeverReused},
		{"Apply/KeepsAnyBytes", applyAnyBytes},
		{"Apply/GivesTheBatchBack", applyBatchNotAliased},
		{"Apply/HoldsEachConditionAgainstTheRecord", applyConditions},
		{"Apply/RefusesAnETagOfAnEarlierLife", applyOldETag},
		{"Apply/NamesTheFirstFailedCondition", applyFirstFailed},
		{"Apply/ChangesNothingIfAConditionFails", applyAllOrNothing},
		{"Apply/TakesConditionsWithoutWrites", applyConditionsOnly},
		{"Apply/TakesTheLargestBatch", applyLargest},
		{"Apply/TakesTheLongestKey", applyLongestKey},
		{"Apply/RefusesMalformedBatches", applyMalformed},
		{"Apply/RaisesTheFormat", applyFormat},
		{"Apply/CreatesOnceUnderContention", applyCreateOnce},
		{"Apply/LosesNoUpdateUnderContention", applyCounters},
		{"Apply/HasNoWriteSkewByState", applyWriteSkewState},
		{"Apply/HasNoWriteSkewByETag", applyWriteSkewETag},
		{"Apply/HasNoWriteSkewByStateOfARecordMadeAgain", applyWriteSkewMadeAgain},
		{"Apply/HoldsTheStateOfARecordMadeAgain", applyStateOfNewLife},
		{"Apply/IsVisibleWhenItReturns", applyVisible},
		{"Apply/IsLinearizable", applyLinearizable},

		{"Changes/AnswersInTheOrderOfApplies", changesOrder},
		{"Changes/KeepsToAfterAndLimit", changesPages},
		{"Changes/FillsInVersions", changesVersions},
		{"Changes/RefusesAnIDTwice", changesTwice},
		{"Changes/LeavesOutRefusedBatches", changesRefused},
		{"Changes/LeavesOutVoidRecords", changesVoid},
		{"Changes/FencesACommitByItsVoidRecord", changesFence},
		{"Changes/ForgetsDeletedRecords", changesDeleted},
		{"Changes/ForgetsOverwrittenRecords", changesOverwritten},
		{"Changes/RefusesBadPages", changesBadPages},
		{"Changes/KeepsKeysInTheOrderOfVersions", changesKeyOrder},
		{"Changes/PutsWhatSawAnotherAfterIt", changesCausalOrder},
		{"Changes/KeepsToTheOrderWhenClocksAreSetBack", changesClocksSetBack},
		{"Changes/SaysWhatWasDeleted", changesHorizon},
		{"Changes/HidesNothingFromAReaderThatFollows", changesFollow},

		{"Time/IsOfOneClock", timeOneClock},

		{"Context/EndedRefusesEveryCall", contextEnded},
		{"Close/EndsTheStore", closeEnds},
		{"Close/LetsCallsUnderWayEnd", closeUnderWay},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t, open(t))
			tt.test(h)
			if err := h.store.Close(); err != nil {
				t.Errorf("close at the end of the test: %v", err)
			}
		})
	}
}

// RunDurable tests a store that outlives its process. It calls place once for each test. place
// returns an Open for one place. The test calls this Open repeatedly, each time after it has closed
// the previous store.
func RunDurable(t *testing.T, place func(t *testing.T) Open) {
	tests := []struct {
		name string
		test func(*testing.T, Open)
	}{
		{"KeepsRecords", durableRecords},
		{"KeepsChanges", durableChanges},
		{"NeverGivesAPositionTwice", durablePositions},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tt.test(t, place(t))
		})
	}
}
