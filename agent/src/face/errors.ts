// Errors and their reports: error codes, exit codes, problems with their places, and suggestions for misspelled names.

export { exitCodeOf, exitCodes } from '../command-line/exit-codes.ts'
export { errorText, fileReason, PenstockError } from '../errors.ts'
export { byCloseness, closest, type Problem, type ProgramDiagnostic } from '../schema/problems.ts'
