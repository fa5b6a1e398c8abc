// What went wrong, and how it is reported: errors with codes, exit codes, problems with their place, and what a wrong name may have meant.

export { exitCodeOf, exitCodes } from '../command-line/exit-codes.ts'
export { errorText, PenstockError } from '../errors.ts'
export { closest, type Problem, type ProgramDiagnostic } from '../schema/problems.ts'
