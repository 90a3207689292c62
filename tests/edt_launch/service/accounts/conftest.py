from quick_passwords import quick_passwords

__all__ = ["quick_passwords"]
