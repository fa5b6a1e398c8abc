// The basics of every program: version, compile cache, printable output, terminal colours, waits. It must be fast to import, because
// `penstock --version` loads it.

export { ownText } from '../bounded-map.ts'
export { keepCompiled, threadEnvironment } from '../cli/compiled.ts'
export { leaveMemoryOutOfDumps } from '../cli/core-dump.ts'
export { giveBackFreeBlocks } from '../cli/memory.ts'
export { pause, systemClock } from '../clock.ts'
export { type Dialect, type Flags, flagHelp, type ParsedArgs, parseFlags } from '../command-line/flags.ts'
export { helpText } from '../command-line/help.ts'
export { commandNamed, completionFlags, endWithReader, faultText, firstWords } from '../command-line/program.ts'
export { counted, countedOf } from '../counted.ts'
export { printable, printableWithColours, printOnlyPrintable } from '../printable.ts'
export { workerFile } from '../remap/worker-file.ts'
export {
  type ColorChoice,
  colorChoices,
  columnsOf,
  isRedrawn,
  readColor,
  type Sheet,
  sheetOf,
  takesColors,
  wrapped,
} from '../terminal.ts'
export { Backoff, doubledMs } from '../timing/backoff.ts'
export { TokenBucket, TokenLine, type Urgency } from '../timing/token-bucket.ts'
export { aborted, interrupted } from '../timing/wait.ts'
export { version } from '../version.ts'
