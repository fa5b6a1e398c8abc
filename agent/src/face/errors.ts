// Errors and their reports: errors with codes, exit codes, problems with their place, and suggestions for wrong names.

export { exitCodeOf, exitCodes } from '../command-line/exit-codes.ts'
export { errorText, fileReason, PenstockError } from '../errors.ts'
export { closest, type Problem, type ProgramDiagnostic } from '../schema/problems.ts'
